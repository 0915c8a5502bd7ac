package write

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/result"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/plan"
)

type Config struct {
	Client      client.Target
	Target      string // name of the target
	TablePrefix string // prefix of the new table's name
	Keep        bool   // keep the table

	Shape       Shape
	Rows        int64         // rows to write; 0 means unlimited
	Duration    time.Duration // time to write, including the warm-up; 0 means unlimited
	WarmUp      time.Duration // initial time that is not measured
	BatchRows   int           // rows per request; 0 means the service's limit
	Concurrency int           // maximum number of requests in flight
	Rate        float64       // rows per second, however long answers take; 0 means a closed loop
	Search      *Search       // search for the highest rate; nil means none

	RetryFor time.Duration // maximum time without an accepted row; 0 means a minute

	Samples *result.SampleWriter // nil means none
	Say     words.Say
}

type Shape struct {
	RowSize int // bytes of names and values, as the service counts them
	Columns int // attribute columns
	Keys    bench.KeyKind
	Seed    uint64
}

// Search configures the search for the highest rate at which latency and throttling stay within limits.
type Search struct {
	MaxP99       time.Duration // limit of the 99th percentile of latency; 0 means none
	MaxThrottled float64       // maximum share of rows throttled
	Start        float64       // initial rows per second; 0 means 1,000
	Step         time.Duration // duration of each step; 0 means 5 s
}

// Limits of a benchmark.
const (
	maxRate        = 1e7
	maxConcurrency = 4096
	defaultRetry   = time.Minute
	defaultStep    = 5 * time.Second
	defaultStart   = 1000
)

func (c *Config) check() error {
	c.BatchRows = cmp.Or(c.BatchRows, table.MaxBatchRows)
	c.RetryFor = cmp.Or(c.RetryFor, defaultRetry)
	c.Client.Connections = max(c.Client.Connections, c.Concurrency)
	for _, check := range []struct {
		bad     bool
		message string
	}{
		{c.Rows < 0, "--rows: want 1 or more"},
		{c.Rows == 0 && c.Duration <= 0, "no end to the measurement: give --rows or --duration"},
		{c.WarmUp < 0 || c.Duration > 0 && c.WarmUp >= c.Duration, "--warmup: want less than --duration, which includes it"},
		{c.BatchRows < 1 || c.BatchRows > table.MaxBatchRows, fmt.Sprintf("--batch-rows: want 1 to %d, the service's limit",
			table.MaxBatchRows)},
		{c.Concurrency < 1 || c.Concurrency > maxConcurrency, fmt.Sprintf("--concurrency: want 1 to %d", maxConcurrency)},
		{!(c.Rate >= 0 && c.Rate <= maxRate), fmt.Sprintf("--rate: want at most %.0f rows a second", maxRate)},
		{c.RetryFor < 0, "--retry-for: want more than 0"},
	} {
		if check.bad {
			return plan.Usagef("%s", check.message)
		}
	}
	if err := table.CheckTableName(c.TablePrefix + "x"); err != nil {
		return plan.Usagef("--table-prefix: %v", err)
	}
	if c.TablePrefix == "" {
		return plan.Usagef("--table-prefix is empty: give one that distinguishes the tables of benchmarks from others")
	}
	return c.checkSearch()
}

func (c *Config) checkSearch() error {
	s := c.Search
	if s == nil {
		return nil
	}
	s.Start, s.Step = cmp.Or(s.Start, defaultStart), cmp.Or(s.Step, defaultStep)
	switch {
	case c.Duration <= 0:
		return plan.Usagef("--find-max needs --duration, the time for which it holds the rate found")
	case c.Rows > 0:
		return plan.Usagef("--find-max and --rows: give only one of them")
	case c.Rate > 0:
		return plan.Usagef("--find-max and --rate: give only one of them; --start-rate sets where the search begins")
	case s.MaxP99 < 0 || s.Step < 100*time.Millisecond:
		return plan.Usagef("--max-p99: want 0 (no limit) or more; --step: want at least 100ms")
	case !(s.MaxThrottled >= 0 && s.MaxThrottled < 1):
		return plan.Usagef("--max-throttled: want 0%% to 99%%")
	case !(s.Start >= 1 && s.Start <= maxRate):
		return plan.Usagef("--start-rate: want 1 to %.0f rows a second", maxRate)
	}
	return nil
}

func (c *Config) settings(tableName string) result.Settings {
	return result.Settings{
		Target: c.Target, Table: tableName, Rows: c.Rows, Duration: c.Duration.Seconds(), RowSize: c.Shape.RowSize,
		Columns: c.Shape.Columns,
		Keys:    string(c.Shape.Keys), BatchRows: c.BatchRows, Concurrency: c.Concurrency, Rate: c.Rate, Seed: c.Shape.Seed,
	}
}

var errEnded = errors.New("the run ended before anything was measured; raise --rows or --duration")
