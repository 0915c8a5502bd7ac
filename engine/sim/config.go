package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/engine/limiter"
)

const MaxPartitions = 4096

// DefaultMaxPartitions is the default limit of automatic splits.
const DefaultMaxPartitions = 32

// Config configures a table's simulation. The zero Config only counts. Its JSON has no times, for lack of units.
type Config struct {
	PartitionUnits float64         `json:"partition_wcu"` // write units a second of one partition; 0 means no limit
	Burst          time.Duration   `json:"-"`             // the maximum savings of an idle token bucket; 0 means a second
	Slow           map[int]float64 `json:"-"`             // of partitions, numbered in key order from 0: their share
	Limiter        string          `json:"limiter"`       // one of package limiter's Kinds; "" is a token bucket
	TableUnits     float64         `json:"table_wcu"`     // additional limit of the whole table; 0 means none
	ThrottleCode   string          `json:"throttle_code"` // of rows above it; "" is OTSNotEnoughCapacityUnit

	Latency time.Duration `json:"-"`      // mean duration of a request to a partition; 0 means none
	Jitter  float64       `json:"jitter"` // 0…1: Latency is drawn from Latency·(1 ± Jitter)

	Partitions int   `json:"-"` // to cut one partition into, once enough keys are known; 0 is not
	Sample     []Key `json:"-"` // sorted: where to cut, in place of seen keys

	AutoSplit AutoSplit `json:"-"`
	Splits    Splits    `json:"-"`
	Moves     Moves     `json:"-"`
	Answers   Answers   `json:"-"`
	Seed      uint64    `json:"seed"`
}

// Answers are answers where the service's behaviour is unknown. The zero Answers follow its documentation.
type Answers struct {
	NewTableMissing time.Duration `json:"-"`           // for this long after CreateTable the table is said not to exist
	HideBounds      bool          `json:"hide_bounds"` // DescribeTable names no bounds of partitions
	Locations       string        `json:"locations"`   // places of split points: a constant; "" is LocatePartitions
	PreSplit        string        `json:"pre_split"`   // of CreateTable's partitions: a constant; "" is PreSplitHeard
	Indexes         int           `json:"indexes"`     // that DescribeTable names; each row takes its units for each
}

// What the places of split points may mean.
const (
	LocatePartitions = "partition"
	LocateNodes      = "node"  // machines that each serve NodePartitions neighbouring partitions
	LocateBlocks     = "block" // each split has its own place
	LocateNothing    = "none"  // the places have no names
)

// MaxIndexes limits a table's secondary indexes.
const MaxIndexes = 5

// How the partitions requested by CreateTable are treated.
const (
	PreSplitHeard   = "heard"   // the table begins with them
	PreSplitIgnored = "ignored" // it begins with one
	PreSplitRefused = "refused" // not created
)

// NodePartitions is the number of neighbouring partitions on a machine.
const NodePartitions = 4

// AutoSplit configures splits by size and by load.
type AutoSplit struct {
	Bytes         int64         `json:"bytes"`          // written to a simulated partition; 0 means not by size
	Load          float64       `json:"load"`           // share of its capacity; 0 is not by load
	Sustain       time.Duration `json:"-"`              // how long Load must last, in whole seconds; 0 is five
	Unavailable   time.Duration `json:"-"`              // how long the children do not serve
	MaxPartitions int           `json:"max_partitions"` // 0 is DefaultMaxPartitions
}

// Splits configures splits by the clock, which starts with the first row written. Each round halves every partition by
// the sampled keys or, without a sample, by the keys written so far.
type Splits struct {
	Start         time.Duration `json:"-"`              // of the first round; 0 is Every
	Every         time.Duration `json:"-"`              // from round to round; 0 is one round only
	Stagger       time.Duration `json:"-"`              // from one partition of a round to the next
	Unavailable   time.Duration `json:"-"`              // how long the children do not serve
	MaxPartitions int           `json:"max_partitions"` // 0 is DefaultMaxPartitions
}

func (s *Splits) on() bool { return s.Start > 0 || s.Every > 0 }

// Moves configures random partitions that stop serving for a while.
type Moves struct {
	PerMinute   float64       `json:"per_minute"` // over the whole table; 0 means none
	Unavailable time.Duration `json:"-"`
}

// Throttle codes for a Config.
const (
	NotEnoughCapacityUnit = "OTSNotEnoughCapacityUnit"
	CapacityUnitExhausted = "OTSCapacityUnitExhausted"
	ServerBusy            = "OTSServerBusy"
)

const (
	maxUnits          = 1e12 // a second, of any limit
	maxMovesPerMinute = 6000
	longest           = float64(100 * time.Hour) // sums of times do not overflow
)

// Check returns the fault of a Config, in the words of its fields' users.
func (c *Config) Check() error {
	for _, n := range []struct {
		name  string
		value float64
		max   float64
	}{
		{"partition capacity", c.PartitionUnits, maxUnits}, {"limit of the table", c.TableUnits, maxUnits},
		{"burst", float64(c.Burst), longest}, {"latency", float64(c.Latency), longest},
		{"jitter", c.Jitter, 1}, {"partitions", float64(c.Partitions), MaxPartitions},
		{"auto split bytes", float64(c.AutoSplit.Bytes), 1e18}, {"auto split load", c.AutoSplit.Load, 1},
		{"auto split sustain", float64(c.AutoSplit.Sustain), longest},
		{"auto split unavailable", float64(c.AutoSplit.Unavailable), longest},
		{"auto split max partitions", float64(c.AutoSplit.MaxPartitions), MaxPartitions},
		{"splits start", float64(c.Splits.Start), longest}, {"splits every", float64(c.Splits.Every), longest},
		{"splits stagger", float64(c.Splits.Stagger), longest},
		{"splits unavailable", float64(c.Splits.Unavailable), longest},
		{"splits max partitions", float64(c.Splits.MaxPartitions), MaxPartitions},
		{"new table missing", float64(c.Answers.NewTableMissing), longest}, {"indexes", float64(c.Answers.Indexes),
			MaxIndexes},
		{"moves per minute", c.Moves.PerMinute, maxMovesPerMinute},
		{"moves unavailable", float64(c.Moves.Unavailable), longest},
	} {
		if !(n.value >= 0) {
			return fmt.Errorf("%s must not be negative", n.name)
		}
		if n.value > n.max {
			return fmt.Errorf("%s is too large", n.name)
		}
	}
	o := limiter.Options{Kind: c.Limiter}
	if err := o.Check(); err != nil {
		return err
	}
	if c.Limiter != "" && c.PartitionUnits == 0 && c.TableUnits == 0 {
		return fmt.Errorf("limiter %s needs a partition capacity or a limit of the table", c.Limiter)
	}
	for n, factor := range c.Slow {
		if n < 0 || n >= MaxPartitions {
			return fmt.Errorf("slow: partition %d is not in 0…%d", n, MaxPartitions-1)
		}
		if !(factor > 0 && factor <= 1) {
			return fmt.Errorf("slow: the share of partition %d must be above 0 and at most 1, not %g", n, factor)
		}
	}
	for _, choice := range []struct {
		name, value string
		of          []string
	}{
		{"throttle code", c.ThrottleCode, []string{NotEnoughCapacityUnit, CapacityUnitExhausted, ServerBusy}},
		{"locations", c.Answers.Locations, []string{LocatePartitions, LocateNodes, LocateBlocks, LocateNothing}},
		{"pre-split", c.Answers.PreSplit, []string{PreSplitHeard, PreSplitIgnored, PreSplitRefused}},
	} {
		if choice.value != "" && !slices.Contains(choice.of, choice.value) {
			return fmt.Errorf("unknown %s %q; want one of %s", choice.name, choice.value, strings.Join(choice.of, ", "))
		}
	}
	if c.AutoSplit.Load > 0 && c.PartitionUnits == 0 {
		return fmt.Errorf("splitting by load needs a partition capacity")
	}
	if len(c.Slow) > 0 && c.PartitionUnits == 0 {
		return fmt.Errorf("slow partitions need a partition capacity")
	}
	if c.Splits.Every > 0 && c.Splits.Every < time.Millisecond {
		return fmt.Errorf("splits every must be at least a millisecond")
	}
	return nil
}

// filled returns c with defaults instead of zeros.
func (c Config) filled() Config {
	c.Burst = cmp.Or(c.Burst, time.Second)
	c.ThrottleCode = cmp.Or(c.ThrottleCode, NotEnoughCapacityUnit)
	c.AutoSplit.Sustain = cmp.Or(c.AutoSplit.Sustain, 5*time.Second)
	c.AutoSplit.MaxPartitions = cmp.Or(c.AutoSplit.MaxPartitions, DefaultMaxPartitions)
	c.Splits.MaxPartitions = cmp.Or(c.Splits.MaxPartitions, DefaultMaxPartitions)
	c.Splits.Start = cmp.Or(c.Splits.Start, c.Splits.Every)
	return c
}

// limiter makes a limiter of units a second that begins at a moment; 0 means no limit.
func (c *Config) limiter(units float64, at int64) *limiter.Limiter {
	l, err := limiter.New(limiter.Options{Kind: c.Limiter, Rate: units, Burst: c.Burst}, time.Unix(0, at))
	if err != nil {
		panic(err) // impossible: Check refuses it
	}
	return l
}
