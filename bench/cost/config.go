package cost

import (
	"cmp"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/null"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/plan"
)

// Tool is the name of tsimport's own load among the measurements, External that of the command of Config.Command.
const (
	Tool     = "tsimport"
	External = "external"
)

// The baselines, in the order of the report: the ways of bench/baseline.
var baselines = []string{"sequential", "workers", "timeline"}

// Config is a measurement.
type Config struct {
	Binary string // tsbench itself: of `Binary tsimport …` tsimport
	What   string // one of Whats; "" is a load
	Rows   uint64
	Shape  bench.Shape
	Rounds int // each load is run so often, in turns; the median counts

	Only       []string      // loads to run; nil is all
	Command    string        // of a further baseline, run by a shell; empty is none
	Timeout    time.Duration // of each run of Command; 0 is none
	LoadFlags  []string      // more flags for tsimport load
	Latency    time.Duration
	Partitions int
	TLS        bool
	Procs      int    // GOMAXPROCS of the loads; 0 leaves it
	Dir        string // for datasets and run folders, there already
	Say        words.Say
}

// loads returns the loads to run, in order.
func (c *Config) loads() ([]string, error) {
	all := append([]string{Tool}, baselines...)
	if c.Command != "" {
		all = append(all, External)
	}
	if c.What != Loading && c.What != "" {
		return []string{Tool}, nil
	}
	if c.Only == nil {
		return all, nil
	}
	for _, name := range c.Only {
		if !slices.Contains(all, name) {
			return nil, plan.Usagef("--only %s: want %s", name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(c.Only, name) }), nil
}

func (c *Config) check() error {
	if err := checkWhat(c); err != nil {
		return err
	}
	switch {
	case c.Rows < 1 || c.Rows > bench.LastID-bench.FirstID+1:
		return plan.Usagef("--rows %d: want 1 to 900,000,000", c.Rows)
	case c.Rounds < 1:
		return plan.Usagef("--rounds %d: want 1 or more", c.Rounds)
	case c.Timeout < 0:
		return plan.Usagef("--timeout: want 0 (none) or more")
	case c.Timeout > 0 && c.Command == "":
		return plan.Usagef("--timeout is for the command of --baseline-cmd; give that too")
	case c.Latency < 0 || c.Partitions < 0 || c.Procs < 0:
		return plan.Usagef("--latency, --partitions and --procs: want 0 or more")
	}
	_, err := c.loads()
	return err
}

// What is measured.
const (
	Loading   = "load"
	Scanning  = "scan"
	Exporting = "export"
	Verifying = "verify"
	Copying   = "copy"
	Counting  = "inspect"
	Checking  = "check"
)

// Whats are all that can be measured.
var Whats = []string{Loading, Scanning, Exporting, Verifying, Copying, Counting, Checking}

// reads reports whether rows of a table are read.
func (c *Config) reads() bool {
	return slices.Contains([]string{Scanning, Exporting, Verifying, Copying}, c.What)
}

// sum is what no client can do without of what is measured.
func (f *Floor) sum(what string) float64 {
	reading, writing := f.AnswerMD5+f.Decode, f.Encode+f.MD5
	switch what {
	case Scanning, Exporting:
		return reading
	case Verifying:
		return reading + f.CSV
	case Copying:
		return reading + writing
	case Counting, Checking:
		return f.File
	}
	return f.CSV + writing
}

// travels is how many bytes of a row travel in what is measured.
func (f *Floor) travels(what string) float64 {
	switch what {
	case Scanning, Exporting, Verifying:
		return f.AnswerBytes
	case Copying:
		return f.AnswerBytes + f.WireBytes
	case Counting, Checking:
		return f.CSVBytes
	}
	return f.WireBytes
}

// StoredRows are rows of a shape as a null server has them.
func StoredRows(shape bench.Shape, rows uint64) (*null.Stored, error) {
	var names []string
	for _, c := range shape.Columns {
		names = append(names, c.Name)
	}
	s := null.NewStored(names)
	err := eachRow(shape, rows, s.Add)
	s.Sort()
	return s, err
}

// seed is that of all inputs.
const seed = 1

// toolCommand is the process of tsimport itself.
func (m *measurement) toolCommand(tableName string) *exec.Cmd {
	key := m.cfg.Shape.Columns[0].Name + ":integer"
	run := filepath.Join(m.cfg.Dir, "run-"+tableName)
	var args, input []string
	switch m.cfg.What {
	case Scanning:
		return exec.CommandContext(m.ctx, m.cfg.Binary, "scan-table", tableName)
	case Exporting:
		args = []string{"export", "--table", tableName, "-o", run + ".csv", "--quiet"}
	case Verifying:
		args, input = []string{"verify", "--table", tableName, "--run-dir", run, "--json", "--quiet"}, []string{"--", m.file}
	case Copying:
		args = []string{"copy", "--run-dir", run, "--json", "--quiet", tableName, "to_" + tableName}
	case Counting:
		args, input = []string{"inspect", "--count"}, []string{m.file}
	case Checking:
		args, input = []string{"check", "--unique", "--pk", m.cfg.Shape.Columns[0].Name}, []string{m.file}
	default:
		args, input = []string{"load", "--table", tableName, "--pk", key, "--run-dir", run, "--json", "--quiet"}, []string{"--", m.file}
	}
	return exec.CommandContext(m.ctx, m.cfg.Binary, slices.Concat([]string{Tool}, args, m.cfg.LoadFlags, input)...)
}

// written is how many rows must have arrived at the server.
func (c *Config) written() uint64 {
	if c.What == Loading || c.What == Copying {
		return c.Rows
	}
	return 0
}

func checkWhat(c *Config) error {
	c.What = cmp.Or(c.What, Loading)
	if !slices.Contains(Whats, c.What) {
		return plan.Usagef("--what %s: want %s", c.What, strings.Join(Whats, ", "))
	}
	if c.What != Loading && (c.Command != "" || c.Only != nil && !slices.Equal(c.Only, []string{Tool})) {
		return plan.Usagef("--what %s: there is tsimport alone to measure", c.What)
	}
	return nil
}
