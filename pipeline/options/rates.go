package options

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
)

// The minimum of --memory, and the maximum of its default.
const (
	MinMemory        = 16 << 20
	maxDefaultMemory = pipeline.DefaultMemory
)

// Speed parses the limits of writing, and of the machine's resources.
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
	if l.Memory < MinMemory {
		return fmt.Errorf("--memory %gMiB: a load needs at least 16MiB", float64(l.Memory)/(1<<20))
	}
	return nil
}

// DefaultMemory returns the default of --memory, which depends on this machine's memory.
func DefaultMemory() int64 { return defaultMemory(machineMemory(os.DirFS("/"))) }

// defaultMemory returns the default of --memory on a machine with the given memory; 0 means unknown.
func defaultMemory(machine int64) int64 {
	if machine == 0 {
		return maxDefaultMemory
	}
	return min(max(machine/4, MinMemory), maxDefaultMemory)
}

// sizeUnits has suffixes of sizes in lower case. As in ls and dd, k and kib are powers of two, kb is a power of ten.
var sizeUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseSize parses a number of bytes such as 512M, 1.5GiB, 10 MB or 4096.
func ParseSize(text string) (int64, error) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number := text[:end]
	unit, ok := sizeUnits[strings.ToLower(strings.TrimSpace(text[end:]))]
	n, err := strconv.ParseFloat(number, 64)
	// ParseFloat also accepts signs, exponents, hexadecimals and underscores.
	if !ok || err != nil || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a size: want bytes, such as 128MiB, 1GiB, 512M or 4096", text)
	}
	if n *= unit; n >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return int64(n), nil
}

// machineMemory returns how many bytes of memory this process may use, or 0 if that is unknown. It is the machine's
// memory or the limit of a control group of the process. root is the root of the file system.
func machineMemory(root fs.FS) int64 {
	least := memTotal(root)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // absent without control groups
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "": // version 2
			least = leastLimit(root, "sys/fs/cgroup", fields[2], "memory.max", least)
		case strings.Contains(","+fields[1]+",", ",memory,"):
			least = leastLimit(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes", least)
		}
	}
	return least
}

// memTotal reads MemTotal, which is in KiB although it says kB.
func memTotal(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// leastLimit returns the lowest of least and the limits of a group and its ancestors. A container may lack some.
func leastLimit(root fs.FS, mount, group, file string, least int64) int64 {
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		text, _ := fs.ReadFile(root, path.Join(mount, dir, file))
		// "max" is not a number.
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 &&
			(least == 0 || n < least) {
			least = n
		}
		if dir == "/" {
			return least
		}
	}
}
