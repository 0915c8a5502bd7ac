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

// DefaultMaxPartitions is the default number of partitions up to which tables split automatically.
const DefaultMaxPartitions = 32

// Config configures a table's simulation. The zero Config only counts. JSON omits durations, as it cannot name units.
type Config struct {
	PartitionUnits float64         `json:"partition_wcu"` // write units per second of one partition; 0 means no limit
	Burst          time.Duration   `json:"-"`             // how long an idle token bucket saves units; 0 means a second
	Slow           map[int]float64 `json:"-"`             // share of capacity by partition, from 0 in key order
	Limiter        string          `json:"limiter"`       // one of package limiter's Kinds; "" means a token bucket
	TableUnits     float64         `json:"table_wcu"`     // additional limit of the whole table; 0 means none
	ThrottleCode   string          `json:"throttle_code"` // for rows above a limit; "" means OTSNotEnoughCapacityUnit

	Latency time.Duration `json:"-"`      // mean duration of a request to a partition; 0 means none
	Jitter  float64       `json:"jitter"` // 0…1: the duration is drawn from Latency·(1 ± Jitter)

	Partitions int   `json:"-"` // initial number; cut once enough keys are known; 0 means one
	Sample     []Key `json:"-"` // sorted keys at which to cut, instead of keys seen

	AutoSplit AutoSplit `json:"-"`
	Splits    Splits    `json:"-"`
	Moves     Moves     `json:"-"`
	Answers   Answers   `json:"-"`
	Seed      uint64    `json:"seed"`
}

// Answers chooses answers where the service's behaviour is unknown. The zero value follows the documentation.
type Answers struct {
	NewTableMissing time.Duration `json:"-"`           // how long a new table appears not to exist
	HideBounds      bool          `json:"hide_bounds"` // DescribeTable omits the bounds of partitions
	Locations       string        `json:"locations"`   // a Locate constant; "" means LocatePartitions
	PreSplit        string        `json:"pre_split"`   // a PreSplit constant; "" means PreSplitHeard
	Indexes         int           `json:"indexes"`     // indexes in DescribeTable; each is charged a row's units
}

// The values of Answers.Locations say what a split's location names.
const (
	LocatePartitions = "partition"
	LocateNodes      = "node"  // machines with NodePartitions neighbouring partitions each
	LocateBlocks     = "block" // each split has its own location
	LocateNothing    = "none"  // all locations have the empty name
)

// MaxIndexes limits a table's secondary indexes.
const MaxIndexes = 5

// The values of Answers.PreSplit say what becomes of the partitions that CreateTable requests.
const (
	PreSplitHeard   = "heard"   // the table starts with them
	PreSplitIgnored = "ignored" // the table starts with one
	PreSplitRefused = "refused" // the table is not created
)

// NodePartitions is the number of neighbouring partitions on a machine.
const NodePartitions = 4

// AutoSplit configures splits by size and by load.
type AutoSplit struct {
	Bytes         int64         `json:"bytes"`          // number written at which a partition splits; 0 means never
	Load          float64       `json:"load"`           // share of its capacity at which a partition splits; 0 means never
	Sustain       time.Duration `json:"-"`              // how long Load must last, in whole seconds; 0 means five
	Unavailable   time.Duration `json:"-"`              // how long the children are unavailable
	MaxPartitions int           `json:"max_partitions"` // 0 means DefaultMaxPartitions
}

// Splits configures splits at fixed times after the first row written. Each round halves every partition by the sampled
// keys or, without a sample, by the keys written so far.
type Splits struct {
	Start         time.Duration `json:"-"`              // time of the first round; 0 means Every
	Every         time.Duration `json:"-"`              // time between rounds; 0 means one round only
	Stagger       time.Duration `json:"-"`              // time between two partitions of a round
	Unavailable   time.Duration `json:"-"`              // how long the children are unavailable
	MaxPartitions int           `json:"max_partitions"` // 0 means DefaultMaxPartitions
}

func (s *Splits) on() bool { return s.Start > 0 || s.Every > 0 }

// Moves makes random partitions unavailable for a while.
type Moves struct {
	PerMinute   float64       `json:"per_minute"` // in the whole table; 0 means none
	Unavailable time.Duration `json:"-"`
}

// Codes for Config.ThrottleCode.
const (
	NotEnoughCapacityUnit = "OTSNotEnoughCapacityUnit"
	CapacityUnitExhausted = "OTSCapacityUnitExhausted"
	ServerBusy            = "OTSServerBusy"
)

const (
	maxUnits          = 1e12 // per second, for any limit
	maxMovesPerMinute = 6000
	longest           = float64(100 * time.Hour) // so that sums of times do not overflow
)

// Check returns an error if a Config is invalid. It uses the words of the command's flags and the admin API.
func (c *Config) Check() error {
	for _, n := range []struct {
		name  string
		value float64
		max   float64
	}{
		{"partition capacity", c.PartitionUnits, maxUnits}, {"table limit", c.TableUnits, maxUnits},
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
		if !(n.value >= 0 && n.value <= n.max) {
			most := any(n.max)
			if n.max == longest {
				most = time.Duration(longest)
			}
			return fmt.Errorf("%s must be 0 to %v", n.name, most)
		}
	}
	o := limiter.Options{Kind: c.Limiter}
	if err := o.Check(); err != nil {
		return err
	}
	if c.Limiter != "" && c.PartitionUnits == 0 && c.TableUnits == 0 {
		return fmt.Errorf("limiter %s needs a partition capacity or a table limit", c.Limiter)
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

// filled returns the configuration with defaults instead of zeros.
func (c Config) filled() Config {
	c.Burst = cmp.Or(c.Burst, time.Second)
	c.ThrottleCode = cmp.Or(c.ThrottleCode, NotEnoughCapacityUnit)
	c.AutoSplit.Sustain = cmp.Or(c.AutoSplit.Sustain, 5*time.Second)
	c.AutoSplit.MaxPartitions = cmp.Or(c.AutoSplit.MaxPartitions, DefaultMaxPartitions)
	c.Splits.MaxPartitions = cmp.Or(c.Splits.MaxPartitions, DefaultMaxPartitions)
	c.Splits.Start = cmp.Or(c.Splits.Start, c.Splits.Every)
	return c
}

// limiter makes a limiter of units per second that starts at a time. With 0 units, it limits nothing.
func (c *Config) limiter(units float64, at int64) *limiter.Limiter {
	l, err := limiter.New(limiter.Options{Kind: c.Limiter, Rate: units, Burst: c.Burst}, time.Unix(0, at))
	if err != nil {
		panic(err) // impossible: Check refuses it
	}
	return l
}
