package spread

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/plan"
)

// The ways to load.
const (
	Naive        = "naive"         // the SDK, rows in file order, one worker
	Parallel     = "parallel"      // the SDK, rows in file order, 32 workers
	Preshuffled  = "preshuffled"   // the rows shuffled first, then as Parallel
	Tsimport     = "tsimport"      // tsimport load
	TsimportNone = "tsimport-none" // tsimport load --order none
)

// Names are all ways to load, in the order they are run.
var Names = []string{Naive, Parallel, Preshuffled, Tsimport, TsimportNone}

// Config is what to measure.
type Config struct {
	Binary    string // of which `Binary tsimport …` is tsimport
	Input     Input
	Table     Table
	Scenarios []string      // of Names; nil is all
	Baseline  time.Duration // after which a load with the SDK is stopped and measured

	Memory string // of tsimport, as its --memory; "" is its default

	Keep string    // folder in which files and stores stay; "" is a temporary one
	Seed uint64    // of the shuffle and the simulation
	Say  words.Say // shows a line of progress; may be nil
}

// Input is what is loaded: a file, or without one the student-card dataset.
type Input struct {
	File string
	Keys []string // of File: --pk for tsimport load
	bench.StudentCards
}

// Table is what the engine simulates.
type Table struct {
	Partitions   int             `json:"partitions"`
	PartitionWCU float64         `json:"partition_wcu"`          // write capacity units a second
	Limiter      string          `json:"limiter,omitempty"`      // how capacity limits: one of package limiter's Kinds; "" is a token bucket
	Outage       string          `json:"outage,omitempty"`       // of the whole service, as serve's --outage: SECONDS:KIND:AFTER; "" is none
	TableWCU     float64         `json:"table_wcu,omitempty"`    // write capacity units a second of the whole table beside; 0 means no limit
	InstanceWCU  float64         `json:"instance_wcu,omitempty"` // write capacity units a second of the instance, which refuses whole requests; 0 means no limit
	LatencyMS    float64         `json:"latency_ms"`             // of a request
	Slow         map[int]float64 `json:"slow,omitempty"`         // partition number, from 0 in key order → share of PartitionWCU
	SplitsMS     float64         `json:"splits_ms,omitempty"`    // begin with one partition, halve all each time this has passed; 0 is not
}

// The clock of splits: the first round, and how long a partition that splits is away.
const (
	firstSplit       = 2 * time.Second
	splitUnavailable = time.Second
)

// uneven says that partitions differ in capacity or in the time they exist, so that no one sum over all of them holds.
func (t *Table) uneven() bool { return len(t.Slow) > 0 || t.SplitsMS > 0 }

// ceiling is what all partitions together may take, units a second; 0 means no limit.
func (t *Table) ceiling() float64 {
	if t.TableWCU > 0 && t.InstanceWCU > 0 {
		return min(t.TableWCU, t.InstanceWCU)
	}
	return max(t.TableWCU, t.InstanceWCU)
}

// Check returns a *plan.UsageError if the Config asks for what is not there.
func (c *Config) Check() error {
	for _, check := range []struct {
		bad     bool
		message string
	}{
		{c.Table.Partitions < 1 || c.Table.Partitions > 1024, "--partitions: want 1 to 1024"},
		{!(c.Table.PartitionWCU >= 1), "--partition-wcu: want 1 or more"},
		{c.Table.Limiter != "" && !slices.Contains(limiter.Kinds, c.Table.Limiter), fmt.Sprintf("--limiter %q: want %s", c.Table.Limiter, strings.Join(limiter.Kinds, ", "))},
		{!(c.Table.TableWCU == 0 || c.Table.TableWCU >= 1), "--limit-table: want 1 or more"},
		{!(c.Table.InstanceWCU == 0 || c.Table.InstanceWCU >= 1), "--limit-instance: want 1 or more"},
		{!(c.Table.LatencyMS >= 0 && c.Table.LatencyMS <= 60_000), "--latency: want 0s to 1m"},
		{c.Table.SplitsMS < 0, "--splits: want more than 0"},
		{c.Baseline <= 0, "--baseline-seconds: want more than 0"},
		{c.Input.File != "" && len(c.Input.Keys) == 0, "a file needs --pk for each primary-key column"},
		{c.Input.File == "" && len(c.Input.Keys) > 0, "--pk goes with a file; the student cards have a key of their own"},
		{c.Input.File == "" && c.Input.Rows == 0, "--rows: want 1 or more"},
		{len(c.Table.Slow) > 0 && c.Table.SplitsMS > 0, "--slow and --splits: give one of them"},
	} {
		if check.bad {
			return plan.Usagef("%s", check.message)
		}
	}
	for n, factor := range c.Table.Slow {
		if n < 0 || n >= c.Table.Partitions || !(factor > 0 && factor <= 1) {
			return plan.Usagef("--slow %d:%g: want a partition of 0 to %d and a share above 0, at most 1", n, factor, c.Table.Partitions-1)
		}
	}
	for _, name := range c.Scenarios {
		if !slices.Contains(Names, name) {
			return plan.Usagef("--only %q: want names of %s", name, strings.Join(Names, ", "))
		}
	}
	return nil
}
