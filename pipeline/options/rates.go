package options

import (
	"fmt"
	"math"
	"os"
	"tsimport/internal/table"
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
)

// Bounds of --memory and its default.
const (
	MinMemory        = 16 << 20
	maxDefaultMemory = pipeline.DefaultMemory
)

// Rates reads how fast rows are written, and what a load may take of the machine.
func Rates(g Given, cfg *pipeline.Config) (err error) {
	w, l := &cfg.Write, &cfg.Limits
	if w.Order, err = plan.ParseOrder(g.String("order")); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		to   *float64
	}{
		{"max-wcu", &w.Rates.MaxWCU}, {"max-rows-per-second", &w.Rates.MaxRows},
	} {
		*f.to = g.Float64(f.name)
		if !(*f.to >= 0) || math.IsInf(*f.to, 0) {
			return fmt.Errorf("--%s %v: want a number above 0, or 0 for none", f.name, *f.to)
		}
	}
	switch w.Compress = g.String("compress"); w.Compress {
	case "", "on", "off":
	default:
		return fmt.Errorf("--compress %q: want on, for slow links, or off", w.Compress)
	}
	var perSecond, batch int64
	for _, f := range []struct {
		name string
		to   *int64
	}{
		{"max-bytes-per-second", &perSecond}, {"batch-bytes", &batch}, {"memory", &l.Memory},
	} {
		if f.name == "memory" && !g.IsSet(f.name) {
			l.Memory = DefaultMemory()
			continue
		}
		if *f.to, err = ParseSize(g.String(f.name)); err != nil {
			return fmt.Errorf("--%s: %w", f.name, err)
		}
	}
	w.Rates.MaxBytes = float64(perSecond)
	if w.BatchBytes = int(batch); batch < 1 || batch > table.MaxBatchBytes {
		return fmt.Errorf("--batch-bytes %s: want up to 4MiB", g.String("batch-bytes"))
	}
	if err := CheckMemory(g.String("memory"), l.Memory); err != nil {
		return err
	}
	return nil
}

// CheckMemory refuses less than a load needs. Text is what was given.
func CheckMemory(text string, bytes int64) error {
	if bytes < MinMemory {
		return fmt.Errorf("--memory %s: a load needs 16MiB at least", text)
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
