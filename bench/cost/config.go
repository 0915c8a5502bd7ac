package cost

import (
	"slices"
	"strings"
	"time"

	"example.com/tsimport/bench"
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
