package options

import (
	"fmt"
	"os"

	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

// Bounds of --memory and its default.
const (
	MinMemory        = 16 << 20
	maxDefaultMemory = pipeline.DefaultMemory
)

// Speed reads how fast rows are written, and what a load may take of the machine.
func Speed(r *Request, cfg *pipeline.Config) (err error) {
	w, l := &cfg.Write, &cfg.Limits
	if r.Order == plan.OrderNone.String() {
		w.Order = plan.OrderNone
	}
	w.Rates = pipeline.Rates{MaxWCU: r.MaxWCU, MaxRows: r.MaxRowsPerSecond, MaxBytes: float64(r.MaxBytesPerSecond)}
	w.Compress, w.BatchBytes = r.Compress, int(r.BatchBytes)
	if l.Memory = r.Memory; l.Memory == 0 {
		l.Memory = DefaultMemory()
	}
	return CheckMemory(l.Memory)
}

// CheckMemory refuses less than a load needs.
func CheckMemory(bytes int64) error {
	if bytes < MinMemory {
		return fmt.Errorf("--memory %gMiB: a load needs 16MiB at least", float64(bytes)/(1<<20))
	}
	return nil
}

// DefaultMemory is what a load takes of this machine's memory.
func DefaultMemory() int64 { return defaultMemory(machineMemory(os.DirFS("/"))) }

// defaultMemory is what a load takes of a machine's memory; 0 is unknown.
func defaultMemory(machine int64) int64 {
	if machine == 0 {
		return maxDefaultMemory
	}
	return min(max(machine/4, MinMemory), maxDefaultMemory)
}
