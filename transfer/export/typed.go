package export

import (
	"bufio"
	"encoding/json"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/tablescan"
)

// typed writes rows as lines that say of each value its column, type and timestamp; a load of them gives the same cells.
type typed struct {
	w       *bufio.Writer
	keys    []string
	records *tablescan.Records
	line    []byte
}

// longLine is less than the lines have in which AppendWide leaves something out.
const longLine = table.MaxRowBytes

// Write writes one row.
func (f *typed) Write(r *scan.Row) error {
	rec, err := f.records.Of(r)
	if err != nil {
		return err
	}
	f.line = jsonl.AppendWide(f.line[:0], f.keys, rec)
	if len(f.line) > longLine && !json.Valid(f.line) { // something was left out
		return &CannotHold{fmt.Sprintf("the row with the key %s is longer than a line can be that is loaded again; keep it with --format archive", tablescan.ShowKey(r))}
	}
	_, err = f.w.Write(f.line)
	return err
}

// Flush writes what is held back.
func (f *typed) Flush() error { return f.w.Flush() }
