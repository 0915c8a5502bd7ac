package commands

import (
	"os"
	"runtime/debug"

	"example.com/tsimport/cmd/tsimport/collection"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

const (
	smallMemory = 64 << 20
	// embeddedMemory is what a store in this process takes beside the load: its caches and the requests it answers.
	embeddedMemory = 512 << 20
)

// limitMemory tells the garbage collector how much the process may take, unless the user has told it.
func limitMemory(memory int64, embedded bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := plan.MemoryLimit(memory)
	if embedded {
		limit += embeddedMemory
	}
	debug.SetMemoryLimit(limit)
	// Garbage of large records is most of what a small load takes, and the collector overshoots on a busy machine.
	if memory < smallMemory && os.Getenv("GOGC") == "" {
		collection.At(25)
	}
}

// orderWarning says what --order none means for rows of a key that do not simply replace each other.
func orderWarning(w *pipeline.Write) string {
	if w.Order != plan.OrderNone || w.Mode == table.Delete {
		return ""
	}
	const any = "--order none: rows of the same key are written in any order"
	switch {
	case w.Condition != table.Ignore || w.When != nil:
		return any + ", so which of them the condition lets pass is chance"
	case w.Mode == table.Update:
		return any + ", so which of them a column is left with is chance"
	}
	return ""
}
