package commands

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
)

// limiterNames lists limiter.Kinds for help texts.
const limiterNames = limiter.TokenBucket + ", " + limiter.FixedWindow + ", " + limiter.SlidingWindow + ", " +
	limiter.Queue + " or " + limiter.Concurrency

const outageUsage = "make the service unavailable: `SECONDS:KIND[:AFTER]` of " + faults.Busy + ", " + faults.Throttle +
	", " + faults.Timeout + ", " + faults.Reset + " or " + faults.Page503 + ", AFTER seconds (5) from the first write"

// simulationFlags returns serve's flags for simulating tables. All are off by default.
func simulationFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.IntFlag{Name: "partitions", Usage: "cut each table into `N` partitions, at keys of sample or first rows"},
		&cli.StringFlag{Name: "sample-file", Usage: "`FILE` of partition-key values, one a line, to cut and split at"},
		&cli.Float64Flag{Name: "partition-wcu", Usage: "write capacity `UNITS` a second of one partition"},
		&cli.StringFlag{Name: "limiter", Usage: "`NAME` of how capacity limits: " + limiterNames, Value: limiter.TokenBucket},
		&cli.Float64Flag{Name: "limit-table", Usage: "write capacity `UNITS` a second of each table, beside its partitions'"},
		&cli.DurationFlag{Name: "burst", Usage: "capacity that an idle bucket saves up, a `DURATION`", Value: time.Second},
		&cli.DurationFlag{Name: "latency", Usage: "mean `DURATION` of a request"},
		&cli.Float64Flag{Name: "jitter", Usage: "`SHARE` by which the latency varies, 0 to 1"},
		&cli.StringSliceFlag{Name: "slow", Usage: "`N:FACTOR` gives partition N (from 0) that share of capacity; repeatable"},
		&cli.StringFlag{Name: "throttle-code",
			Usage: "`CODE` of rows above the capacity: OTSNotEnoughCapacityUnit, OTSCapacityUnitExhausted or OTSServerBusy"},
		&cli.StringFlag{Name: "splits", Usage: "halve partitions `EVERY[:UNAVAILABLE[:MAX]]` up to MAX (default 1s and 32)"},
		&cli.StringFlag{Name: "moves", Usage: "move random partitions, `PER_MINUTE[:UNAVAILABLE]` (default 500ms)"},
		&cli.Int64Flag{Name: "auto-split-bytes", Usage: "split a partition that has grown by `BYTES`"},
		&cli.Float64Flag{Name: "auto-split-load", Usage: "split a partition after five seconds at this `SHARE` of capacity"},
		&cli.BoolFlag{Name: "first-write-wins", Usage: "of two writes of a cell with one timestamp, keep the first"},
		&cli.BoolFlag{Name: "deletions-hide-earlier", Usage: "hide writes after a deletion with an earlier timestamp"},
		&cli.BoolFlag{Name: "exclusive-lower-edge", Usage: "refuse timestamps exactly as old as the maximum deviation"},
		&cli.DurationFlag{Name: "new-table-missing", Usage: "for this `DURATION` after CreateTable the table does not exist"},
		&cli.BoolFlag{Name: "hide-bounds", Usage: "leave the bounds of partitions out of DescribeTable"},
		&cli.StringFlag{Name: "locations", Usage: "`THING` that ComputeSplitPointsBySize gives a location for: partition, " +
			"node, block or none", Value: sim.LocatePartitions},
		&cli.StringFlag{Name: "pre-split", Usage: "whether partitions requested in CreateTable are created: `ANSWER` " +
			"heard, ignored or refused", Value: sim.PreSplitHeard},
		&cli.DurationFlag{Name: "index-delay", Usage: "`DURATION` by which secondary indexes lag their table"},
		&cli.IntFlag{Name: "indexes", Usage: "DescribeTable names `N` secondary indexes, which take units too; 0 to 5"},
		&cli.Float64Flag{Name: "fault-rate", Usage: "`SHARE` of write requests that get a fault"},
		&cli.StringSliceFlag{Name: "fault-kinds", Usage: "`KIND[:CODE],…` of " + strings.Join(faults.Actions(), ", ") +
			" (default: all)"},
		&cli.DurationFlag{Name: "fault-delay", Usage: "delay of apply-late, as a `DURATION`", Value: time.Second},
		&cli.StringFlag{Name: "outage", Usage: outageUsage},
		&cli.Uint64Flag{Name: "random-seed", Usage: "random seed `N`"},
	}
	for _, f := range flags {
		setCategory(f, "Simulation")
	}
	return flags
}

// setCategory puts a flag into a help group. Every kind of flag has the field.
func setCategory(f cli.Flag, name string) {
	reflect.ValueOf(f).Elem().FieldByName("Category").SetString(name)
}

// simulation parses the flags of the simulation. It returns nil if none is set.
func simulation(c *call) (*server.Simulation, error) {
	asked := slices.ContainsFunc(simulationFlags(), func(f cli.Flag) bool {
		name := f.Names()[0]
		return c.IsSet(name) && !strings.HasPrefix(name, "fault-") && name != "outage" && name != "random-seed"
	})
	if !asked {
		return nil, nil
	}
	s := &server.Simulation{Config: sim.Config{
		Partitions: c.Int("partitions"), PartitionUnits: c.Float64("partition-wcu"), TableUnits: c.Float64("limit-table"),
		Burst:   c.Duration("burst"),
		Latency: c.Duration("latency"), Jitter: c.Float64("jitter"), ThrottleCode: c.String("throttle-code"),
		Seed: c.Uint64("random-seed"),
		AutoSplit: sim.AutoSplit{Bytes: c.Int64("auto-split-bytes"), Load: c.Float64("auto-split-load"),
			Unavailable: time.Second},
		Answers: sim.Answers{NewTableMissing: c.Duration("new-table-missing"), HideBounds: c.Bool("hide-bounds"),
			Locations: c.String("locations"), PreSplit: c.String("pre-split"), Indexes: c.Int("indexes")},
	}}
	s.Choices.FirstWriteWins, s.Choices.DeletionsHideEarlier = c.Bool("first-write-wins"), c.Bool("deletions-hide-earlier")
	s.Choices.ExclusiveLowerEdge, s.Choices.IndexDelay = c.Bool("exclusive-lower-edge"), c.Duration("index-delay")
	if c.IsSet("limiter") {
		s.Limiter = c.String("limiter")
	}
	if c.IsSet("burst") && s.Limiter != "" && s.Limiter != limiter.TokenBucket {
		return nil, usagef("--burst is for --limiter %s; %s has no burst", limiter.TokenBucket, s.Limiter)
	}
	var err error
	if s.Slow, err = parseSlow(c.StringSlice("slow")); err != nil {
		return nil, err
	}
	if s.Splits, err = parseSplits(c.String("splits")); err != nil {
		return nil, err
	}
	if s.Moves, err = parseMoves(c.String("moves")); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, usagef("%v; see tsimport serve --help", err)
	}
	if file := c.String("sample-file"); file != "" {
		if s.Partitions == 0 && s.Splits.Every == 0 && s.AutoSplit.Bytes == 0 && s.AutoSplit.Load == 0 {
			return nil, usagef("--sample-file says where to split tables, but no flag splits them: add --partitions or --splits")
		}
		s.SampleLines, err = readLines(file)
	}
	return s, err
}

func parseSlow(list []string) (map[int]float64, error) {
	slow := map[int]float64{}
	for _, text := range list {
		number, share, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(number)
		factor, err2 := strconv.ParseFloat(share, 64)
		if err != nil || err2 != nil {
			return nil, usagef("--slow %q is not N:FACTOR, such as 7:0.1", text)
		}
		slow[n] = factor
	}
	return slow, nil
}

func parseSplits(text string) (s sim.Splits, err error) {
	if text == "" {
		return s, nil
	}
	parts := strings.Split(text, ":")
	s.Unavailable = time.Second
	s.Every, err = time.ParseDuration(parts[0])
	if err == nil && len(parts) > 1 {
		s.Unavailable, err = time.ParseDuration(parts[1])
	}
	if err == nil && len(parts) > 2 {
		s.MaxPartitions, err = strconv.Atoi(parts[2])
	}
	if err != nil || len(parts) > 3 || s.Every <= 0 {
		return s, usagef("--splits %q is not EVERY[:UNAVAILABLE[:MAX]], such as 10s:1s:32", text)
	}
	return s, nil
}

func parseMoves(text string) (m sim.Moves, err error) {
	if text == "" {
		return m, nil
	}
	rate, away, given := strings.Cut(text, ":")
	m.Unavailable = 500 * time.Millisecond
	m.PerMinute, err = strconv.ParseFloat(rate, 64)
	if err == nil && given {
		m.Unavailable, err = time.ParseDuration(away)
	}
	if err != nil {
		return m, usagef("--moves %q is not PER_MINUTE[:UNAVAILABLE], such as 6:500ms", text)
	}
	return m, nil
}

func readLines(file string) (lines []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		if line := strings.TrimSuffix(scanner.Text(), "\r"); line != "" {
			lines = append(lines, line)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("read %s: it holds no partition-key values", file)
	}
	return lines, nil
}

// faultPlan parses the flags of faults. It returns nil if none is set.
func faultPlan(c *call) (*faults.Plan, error) {
	if !c.IsSet("fault-rate") {
		if c.IsSet("fault-kinds") || c.IsSet("fault-delay") {
			return nil, usagef("--fault-kinds and --fault-delay need --fault-rate")
		}
		if !c.IsSet("outage") {
			return nil, nil
		}
	}
	var kinds []string
	for _, list := range c.StringSlice("fault-kinds") {
		kinds = slices.Concat(kinds, strings.Split(list, ","))
	}
	p, err := faults.Random{Rate: c.Float64("fault-rate"), Kinds: kinds, Delay: c.Duration("fault-delay"),
		Seed: c.Uint64("random-seed")}.Plan()
	if err != nil {
		return nil, usagef("%v; see tsimport serve --help", err)
	}
	if text := c.String("outage"); text != "" {
		if p.Outage, err = faults.ParseOutage(text); err != nil {
			return nil, usagef("--outage: %v", err)
		}
	}
	return p, nil
}
