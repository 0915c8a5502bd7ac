package options

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
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
	cfg.Lanes.Rates = lanes.Rates{MaxWCU: r.MaxWCU, MaxRows: r.MaxRowsPerSecond, MaxBytes: float64(r.MaxBytesPerSecond)}
	w.Compress, cfg.Lanes.BatchBytes = r.Compress, int(r.BatchBytes)
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

// sizeUnits are what may follow a number of bytes, in small letters. A letter alone is a power of two, as ls and dd
// have it; followed by a B a power of ten, unless an i says otherwise.
var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseSize reads a number of bytes such as 512M, 1.5GiB, 10 MB or 4096.
func ParseSize(text string) (int64, error) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number := text[:end]
	unit, ok := sizeUnits[strings.ToLower(strings.TrimSpace(text[end:]))]
	n, err := strconv.ParseFloat(number, 64)
	// ParseFloat also takes signs, exponents, hexadecimals and underscores.
	if !ok || err != nil || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a size: want bytes, such as 128MiB, 1GiB, 512M or 4096", text)
	}
	if n *= unit; n >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large a size", text)
	}
	return int64(n), nil
}
