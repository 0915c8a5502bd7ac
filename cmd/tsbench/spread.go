package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/pipeline/plan"
)

const tsimportNone = "tsimport-none"

// tableName is the table of every load. Each load has its own engine, so none benefits from another.
const tableName = "spread"

// cardKey is the primary key of the student cards, cardColumns their columns.
var (
	cardKey     = []string{"CardID:integer", "SellerID:string", "DeviceID:integer", "OrderNumber:integer"}
	cardColumns = append(slices.Clone(cardKey), "Amount:double", "OrderTime:string", "Item:string")
)

// simulation lists the flags that are passed on to tsimport serve, which checks them.
var simulation = []string{"partition-wcu", "limiter", "limit-table", "limit-instance", "outage", "latency",
	"slow", "splits"}

func spreadCommand() *cli.Command {
	return &cli.Command{
		Name:  "spread",
		Usage: "measure how evenly loads use the partitions of a table with limited capacity",
		Description: "Loads the student-card dataset into a table of simulated partitions in several ways, each on a fresh " +
			"engine in a separate process, and shows how much of the partitions' capacity each has used:\n" +
			"  baseline       the official SDK, 200 rows per request in file order, 32 workers, the SDK's retries\n" +
			"  tsimport       tsimport load, the last row of a key wins\n" +
			"  tsimport-none  tsimport load --order none\n" +
			"After a load by tsimport it compares every row of the table with the file, and ends with 1 if they differ.",
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "rows", Usage: "number of rows", Value: 1_000_000},
			&cli.StringFlag{Name: "order", Usage: "sorted (CardID), arrival or random", Value: string(bench.Sorted)},
			&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same rows", Value: seed},
			&cli.StringSliceFlag{Name: "pk", Usage: "primary-key column `NAME:TYPE`, in order (default: " +
				strings.Join(cardKey, ", ") + ")"},
			&cli.StringFlag{Name: "only", Usage: "only these `WAYS` to load, comma-separated"},
			&cli.Float64Flag{Name: "baseline-seconds", Usage: "measure the SDK's load for this many seconds", Value: 60},
			&cli.StringSliceFlag{Name: "load-flag",
				Usage: "`FLAG` for tsimport load, as in --load-flag=--memory=128MiB; repeatable"},
			&cli.BoolFlag{Name: "json", Usage: "print the measurements as one JSON object"},
			&cli.IntFlag{Name: "partitions", Usage: "partitions of the table, with equal numbers of rows", Value: 32},
			&cli.StringFlag{Name: "splits", Usage: "`EVERY[:UNAVAILABLE[:MAX]]`: start with one partition, and halve all of " +
				"them every EVERY until there are MAX (default: 32)"},
			// These flags are passed on to tsimport serve.
			&cli.StringFlag{Name: "partition-wcu", Usage: "write capacity `UNITS` per second of each partition", Value: "1000"},
			&cli.StringFlag{Name: "limiter", Usage: "`NAME` of the limiter of capacity"},
			&cli.Float64Flag{Name: "limit-instance",
				Usage: "write capacity `UNITS` per second of the instance, which refuses more with 429 OTSFlowControl"},
			&cli.Float64Flag{Name: "limit-table", Usage: "write capacity `UNITS` per second of the whole table"},
			&cli.StringFlag{Name: "outage", Usage: "`SECONDS:KIND[:AFTER]`"},
			&cli.StringFlag{Name: "latency", Usage: "simulated latency of a request", Value: "5ms"},
			&cli.StringFlag{Name: "slow", Usage: "partition `N:FACTOR`, from 0 in key order, has this share of the capacity"},
		},
		Action: func(c *cli.Context) error {
			return inFolder("", func(dir string) error { return measureSpread(c, dir) })
		},
	}
}

// scenario is one way of loading, with its result. Counts and times are the engine's.
type scenario struct {
	Name           string  `json:"name"`
	Error          string  `json:"error,omitempty"` // why the load ended early, or how the table differs
	Seconds        float64 `json:"seconds"`         // from the start of the loader to its end
	Stopped        bool    `json:"stopped"`         // ended by --baseline-seconds, before all rows were written
	Makespan       float64 `json:"makespan_seconds"`
	Ideal          float64 `json:"ideal_seconds,omitempty"` // the least that the slowest partition and the limits allow
	CapacityShare  float64 `json:"capacity_share"`
	ThrottledShare float64 `json:"throttled_share"` // share of the rows sent
	BatchFill      float64 `json:"batch_fill"`      // rows per request, divided by 200
	Rows           int64   `json:"rows"`
	Lost           int64   `json:"lost"` // rows missing from the table, or on which the SDK gave up
	Requests       int64   `json:"requests"`
	PeakRSSBytes   int64   `json:"peak_rss_bytes"`

	Partitions []partition `json:"partitions"`
}

// partition is the engine's report on a partition. Times are Unix milliseconds; in a scenario, since the load's start.
type partition struct {
	rowCounts
	Start    json.RawMessage `json:"start"`    // null means below all keys
	Capacity float64         `json:"capacity"` // units per second
	SinceMS  float64         `json:"since_ms"`
	EndedMS  *float64        `json:"ended_ms,omitempty"`
	FirstMS  *float64        `json:"first_ms,omitempty"` // time of the first accepted row
	LastMS   *float64        `json:"last_ms,omitempty"`
}

type rowCounts struct {
	Rows        int64 `json:"rows"`
	Units       int64 `json:"units"`
	Failed      int64 `json:"failed"`
	Throttled   int64 `json:"throttled"`
	Unavailable int64 `json:"unavailable"`
}

type spreading struct {
	c    *cli.Context
	dir  string
	file string
	keys []string
}

func measureSpread(c *cli.Context, dir string) error {
	s := &spreading{c: c, dir: dir, file: filepath.Join(dir, "student-cards.csv"), keys: c.StringSlice("pk")}
	names, err := ways(c, baseline, tool, tsimportNone)
	if err != nil {
		return err
	}
	switch {
	case c.Args().Present():
		return plan.Usagef("spread takes flags only, not %q", c.Args().First())
	case c.Uint64("rows") == 0:
		return plan.Usagef("--rows: want 1 or more")
	case c.Float64("limit-table") < 0 || c.Float64("limit-instance") < 0 || !(c.Float64("baseline-seconds") > 0):
		return plan.Usagef("--limit-table, --limit-instance, --baseline-seconds: want more than 0")
	}
	if len(s.keys) == 0 {
		s.keys = cardKey
	}
	cards := bench.StudentCards{Rows: c.Uint64("rows"), Order: bench.Order(c.String("order")), Seed: c.Uint64("seed")}
	if !slices.Contains([]bench.Order{bench.Sorted, bench.Arrival, bench.Random}, cards.Order) {
		return plan.Usagef("--order %q: want sorted, arrival or random", cards.Order)
	}
	if err := writeFile(s.file, func(w io.Writer) error { return cards.WriteCSV(c.Context, w) }); err != nil {
		return err
	}
	if err := s.sample(); err != nil {
		return err
	}
	report := struct {
		Scenarios []*scenario `json:"scenarios"`
	}{}
	differs := false
	for _, name := range names {
		fmt.Fprintf(c.App.ErrWriter, "tsbench: %s: loading\n", name)
		found, err := s.scenario(c.Context, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		report.Scenarios, differs = append(report.Scenarios, found), differs || found.Error != ""
	}
	err = show(c, report, func(w io.Writer) error { return writeScenarios(w, report.Scenarios) })
	if err == nil && differs {
		err = errors.New("a load by tsimport failed, or its table differs from the file; see above")
	}
	return err
}

// sample writes the values of the first key column, by which the table is divided, to a file.
func (s *spreading) sample() error {
	first, _, _ := strings.Cut(s.keys[0], ":")
	in, err := os.Open(s.file)
	if err != nil {
		return err
	}
	defer in.Close()
	r := csv.NewReader(in)
	header, err := r.Read()
	column := slices.Index(header, first)
	if err == nil && column < 0 {
		return plan.Usagef("--pk %s: want one of %s", first, strings.Join(header, ", "))
	}
	return cmp.Or(err, writeFile(s.file+".keys", func(w io.Writer) error {
		for {
			fields, err := r.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				_, err = fmt.Fprintln(w, fields[column])
			}
			if err != nil {
				return err
			}
		}
	}))
}

func (s *spreading) scenario(ctx context.Context, name string) (*scenario, error) {
	store := filepath.Join(s.dir, "store-"+name)
	defer os.RemoveAll(store) // so that the disk holds only one store
	args := []string{tool, "serve", "--store", store, "--listen", "127.0.0.1:0", "--sync", "none", "--admin", "--quiet"}
	if !s.c.IsSet("splits") {
		args = append(args, "--partitions", fmt.Sprint(s.c.Int("partitions")), "--sample-file", s.file+".keys")
	}
	for _, flag := range simulation {
		if value := fmt.Sprint(s.c.Value(flag)); value != "" && value != "0" {
			args = append(args, "--"+flag, value)
		}
	}
	e, err := serve(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	defer e.close()
	create := append([]string{tool, "table", "create", tableName, "--quiet"}, s.flags()...)
	if _, err := finish(command(ctx, e.env, self(), create...)); err != nil {
		return nil, err
	}
	found, start := &scenario{Name: name}, time.Now() // token buckets start to fill when the table is created
	if err := s.load(ctx, e, found); err != nil {
		return nil, err
	}
	found.Seconds = time.Since(start).Seconds()
	stats, err := e.stats(ctx)
	if err != nil {
		return nil, err
	}
	s.measure(found, stats, float64(start.UnixMicro())/1000)
	if name != baseline {
		fmt.Fprintf(s.c.App.ErrWriter, "tsbench: %s: comparing the table with the file\n", name)
		verify := append([]string{tool, "verify", s.file, "--table", tableName, "--quiet", "--json"}, s.flags()...)
		r, err := finish(command(ctx, e.env, self(), verify...))
		var compared struct {
			Missing int64 `json:"missing"`
		}
		if json.Unmarshal(r.stdout, &compared) == nil {
			found.Lost = compared.Missing
		}
		if err != nil {
			found.Error = cmp.Or(found.Error, fmt.Sprintf("compare the table with the file: %v: %s", err, r.stdout))
		}
	}
	return found, ctx.Err()
}

func (s *spreading) flags() (flags []string) {
	for _, k := range s.keys {
		flags = append(flags, "--pk", k)
	}
	return flags
}

func (s *spreading) load(ctx context.Context, e *server, found *scenario) error {
	env, args := e.env, []string{baseline}
	if found.Name == baseline {
		var keys []string
		for _, k := range s.keys {
			name, _, _ := strings.Cut(k, ":")
			keys = append(keys, name)
		}
		env = append(slices.Clone(env), "BENCH_FILE="+s.file, "BENCH_TABLE="+tableName, "BENCH_COLUMNS="+
			strings.Join(cardColumns, ","),
			"BENCH_KEYS="+strings.Join(keys, ","), fmt.Sprint("BENCH_SECONDS=", s.c.Float64("baseline-seconds")))
	} else {
		order := plan.LastWins
		if found.Name == tsimportNone {
			order = plan.OrderNone
		}
		args = slices.Concat([]string{tool, "load", s.file, "--table", tableName, "--run-dir",
			filepath.Join(s.dir, "run-"+found.Name), "--order", order.String(), "--json", "--quiet"},
			s.flags(), s.c.StringSlice("load-flag"))
	}
	r, err := finish(command(ctx, env, self(), args...))
	var said outcome
	_ = json.Unmarshal(r.stdout, &said)
	found.PeakRSSBytes, found.Lost, found.Stopped = said.PeakRSSBytes, said.Lost, said.Stopped
	if err != nil && (ctx.Err() != nil || errors.As(err, new(*plan.UsageError)) || found.Name == baseline) {
		return err
	}
	if err != nil {
		found.Error = err.Error()
	}
	return nil
}

type tableStats struct {
	rowCounts
	Requests   int64       `json:"requests"`
	Partitions []partition `json:"partitions"`
}

// stats requests the engine's counters, including those of requests refused by the instance's limit.
func (s *server) stats(ctx context.Context) (*tableStats, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.says["url"]+"/_engine/stats", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request) // no proxy for this machine
	if err != nil {
		return nil, fmt.Errorf("read the engine's counters: %w", err)
	}
	defer response.Body.Close()
	var all struct {
		Tables   map[string]*tableStats `json:"tables"`
		Instance struct {
			RefusedRequests int64 `json:"refused_requests"`
			RefusedRows     int64 `json:"refused_rows"`
		} `json:"instance"`
	}
	if err = json.NewDecoder(response.Body).Decode(&all); err != nil || all.Tables[tableName] == nil {
		err = cmp.Or(err, fmt.Errorf("%s, but none for table %s", response.Status, tableName))
		return nil, fmt.Errorf("read the engine's counters: %w", err)
	}
	t := all.Tables[tableName]
	t.Requests += all.Instance.RefusedRequests
	t.Throttled += all.Instance.RefusedRows
	return t, nil
}

// measure computes derived figures of a load that started at start, in Unix milliseconds.
func (s *spreading) measure(found *scenario, stats *tableStats, start float64) {
	ceiling := s.c.Float64("limit-table")
	if instance := s.c.Float64("limit-instance"); instance > 0 && (ceiling == 0 || instance < ceiling) {
		ceiling = instance
	}
	sent := stats.Rows + stats.Failed + stats.Throttled + stats.Unavailable
	found.Rows, found.Requests = stats.Rows, stats.Requests
	found.ThrottledShare = ratio(float64(stats.Throttled), float64(sent))
	found.BatchFill = ratio(float64(sent), float64(stats.Requests)*batchRows)
	end := 0.0
	for i := range stats.Partitions {
		p := &stats.Partitions[i]
		for _, ms := range []*float64{&p.SinceMS, p.EndedMS, p.FirstMS, p.LastMS} {
			if ms != nil {
				*ms = max(0, *ms-start)
			}
		}
		if p.LastMS != nil {
			end = max(end, *p.LastMS)
		}
	}
	if found.Stopped {
		end = found.Seconds * 1000
	}
	found.Makespan, found.CapacityShare = end/1000, shareOf(stats, ceiling, end)
	if !found.Stopped && !s.c.IsSet("splits") {
		found.Ideal = idealOf(stats, ceiling)
	}
	found.Partitions = stats.Partitions
}

// shareOf returns the used share of the capacity that the table offered until end, in milliseconds. A partition's
// capacity counts while it serves, with or without rows. A limit of the table caps the sum.
func shareOf(stats *tableStats, ceiling, end float64) float64 {
	capacity := 0.0
	for _, p := range stats.Partitions {
		until := end
		if p.EndedMS != nil {
			until = min(until, *p.EndedMS)
		}
		capacity += p.Capacity * max(0, until-p.SinceMS) / 1000
	}
	if ceiling > 0 {
		capacity = min(capacity, ceiling*end/1000)
	}
	return ratio(float64(stats.Units), capacity)
}

// idealOf returns the seconds that a perfect loader would take.
func idealOf(stats *tableStats, ceiling float64) (seconds float64) {
	for _, p := range stats.Partitions {
		seconds = max(seconds, ratio(float64(p.Units), p.Capacity))
	}
	return max(seconds, ratio(float64(stats.Units), ceiling))
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

func writeScenarios(out io.Writer, scenarios []*scenario) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tseconds\tlast row\tpossible\tcapacity share\tthrottled\trows\trequests\tbatch fill\tlost\tpeak "+
		"memory\t")
	for _, s := range scenarios {
		stopped := ""
		if s.Stopped {
			stopped = "+"
		}
		fmt.Fprintf(t, "%s\t%.1f%s\t%.2f\t%.2f\t%.4f\t%.2f %%\t%d\t%d\t%.2f\t%d\t%d MiB\t\n", s.Name, s.Seconds, stopped,
			s.Makespan, s.Ideal, s.CapacityShare,
			100*s.ThrottledShare, s.Rows, s.Requests, s.BatchFill, s.Lost, s.PeakRSSBytes>>20)
	}
	for _, s := range scenarios {
		if s.Error != "" {
			fmt.Fprintf(t, "%s: %s\n", s.Name, s.Error)
		}
	}
	return t.Flush()
}
