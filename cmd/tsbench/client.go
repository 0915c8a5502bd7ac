package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// task is a command of tsimport against the null server, with the placeholders TABLE, FILE and RUN.
type task struct {
	words         string
	reads, writes bool // rows of a table
}

var tasks = map[string]task{
	"load":    {words: "load --table TABLE --pk id:integer --run-dir RUN --json --quiet FILE", writes: true},
	"export":  {words: "export --table TABLE -o RUN.csv --quiet", reads: true},
	"verify":  {words: "verify --table TABLE --run-dir RUN --json --quiet FILE", reads: true},
	"copy":    {words: "copy --run-dir RUN --json --quiet TABLE to_TABLE", reads: true, writes: true},
	"inspect": {words: "inspect --count FILE"},
	"check":   {words: "check --unique --pk id FILE"},
}

func clientCommand() *cli.Command {
	return &cli.Command{
		Name:  "client",
		Usage: "measure what a row costs the client, compared with a program that is written with the SDK",
		Description: "Generates rows and loads them into a server in a process of its own that reads requests and answers " +
			"success:\n" +
			"  tsimport  tsimport load\n" +
			"  baseline  the SDK, one goroutine that reads and 32 that write 200 rows a request\n" +
			"  external  --baseline-cmd\n" +
			"With --what export, verify or copy the server gives the same rows to read; inspect (--count) and check " +
			"(--unique) read the file.\n" +
			"The command of --baseline-cmd finds TABLESTORE_ENDPOINT, TABLESTORE_INSTANCE,\n" +
			"TABLESTORE_ACCESS_KEY_ID, TABLESTORE_ACCESS_KEY_SECRET, BENCH_FILE (CSV with a header), BENCH_TABLE (existing),\n" +
			"BENCH_COLUMNS (NAME:TYPE, with commas, the primary key first) and BENCH_ROWS in its environment; it must write\n" +
			"every row once, and may print {\"allocations\": N, \"allocated_bytes\": N, \"peak_rss_bytes\": N}.",
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "rows", Usage: "how many", Value: 1_000_000},
			&cli.StringFlag{Name: "shape", Usage: "12 (columns, 150 bytes of CSV), 3 (60 bytes), 60; 4k, 64k or 2m (one cell " +
				"of that size), 1000 (columns), null (no values), names (long ones)", Value: "12"},
			&cli.StringFlag{Name: "what", Usage: strings.Join(slices.Sorted(maps.Keys(tasks)), ", "), Value: "load"},
			&cli.IntFlag{Name: "rounds", Usage: "number of loads of each kind, in turns; the median counts", Value: 3},
			&cli.StringFlag{Name: "only", Usage: "only these `LOADS`, comma-separated"},
			&cli.StringFlag{Name: "baseline-cmd", Usage: "a further load, run by /bin/sh -c `COMMAND`"},
			&cli.StringSliceFlag{Name: "load-flag", Usage: "`FLAG` for tsimport, as in --load-flag=--concurrency=8; repeatable"},
			&cli.DurationFlag{Name: "latency", Usage: "of a request"},
			&cli.IntFlag{Name: "partitions", Usage: "of the table", Value: 1},
			&cli.BoolFlag{Name: "tls", Usage: "load over TLS, the server with a certificate of its own"},
			&cli.StringFlag{Name: "keep", Usage: "`DIR` in which the input and the run folders stay (default: a temporary one)"},
			&cli.BoolFlag{Name: "json", Usage: "print the measurements as one JSON object"},
		},
		Action: func(c *cli.Context) error {
			return inFolder(c.String("keep"), func(dir string) error { return measureClient(c, dir) })
		},
	}
}

// load is the cost of one way to load. CPU is the user and system time of its process.
type load struct {
	CPUPerRow        float64 `json:"cpu_us_per_row"`
	RowsPerSecond    float64 `json:"rows_per_second"`
	AllocsPerRow     float64 `json:"allocs_per_row"` // 0 for an external command that does not report it
	AllocBytesPerRow float64 `json:"alloc_bytes_per_row"`
	PeakRSSBytes     int64   `json:"peak_rss_bytes"`
	Wanted           float64 `json:"cores_wanted"` // cores: CPU time and waits for a processor; 0 if unknown
	Requests         int64   `json:"requests"`
	Connections      int64   `json:"connections"`
	RowsAgain        int64   `json:"rows_again,omitempty"` // rows that an external command sent more than once
}

// costs is a measurement: for each load the round with the median CPU.
type costs struct {
	What  string          `json:"what"`
	Shape string          `json:"shape"`
	Rows  uint64          `json:"rows"`
	Loads map[string]load `json:"loads"`

	order []string
}

type measuring struct {
	c      *cli.Context
	task   task
	shape  bench.Shape
	dir    string
	file   string
	env    []string // of every load
	server *server
}

// ways returns the requested ways to load, in order.
func ways(c *cli.Context, all ...string) ([]string, error) {
	if !c.IsSet("only") {
		return all, nil
	}
	only := strings.Split(c.String("only"), ",")
	for _, name := range only {
		if !slices.Contains(all, name) {
			return nil, plan.Usagef("--only %s: want %s", name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(only, name) }), nil
}

func measureClient(c *cli.Context, dir string) (err error) {
	m := &measuring{c: c, task: tasks[c.String("what")], dir: dir, file: filepath.Join(dir, "rows.csv")}
	all := []string{tool}
	if c.String("what") == "load" {
		all = append(all, baseline)
		if c.IsSet("baseline-cmd") {
			all = append(all, external)
		}
	}
	report := &costs{What: c.String("what"), Shape: c.String("shape"), Rows: c.Uint64("rows"), Loads: map[string]load{}}
	if report.order, err = ways(c, all...); err != nil {
		return err
	}
	if m.shape, err = bench.FindShape(c.String("shape")); err != nil {
		return plan.Usagef("--%v", err)
	}
	switch {
	case c.Args().Present():
		return plan.Usagef("client takes no arguments (%q)", c.Args().First())
	case m.task.words == "":
		return plan.Usagef("--what %s: want %s", report.What, strings.Join(slices.Sorted(maps.Keys(tasks)), ", "))
	case report.Rows < 1 || report.Rows > bench.LastID-bench.FirstID+1:
		return plan.Usagef("--rows %d: want 1 to 900,000,000", report.Rows)
	case c.Int("rounds") < 1:
		return plan.Usagef("--rounds %d: want 1 or more", c.Int("rounds"))
	}
	fmt.Fprintf(c.App.ErrWriter, "tsbench: generating %d rows of %d columns\n", report.Rows, len(m.shape.Columns))
	if err := writeFile(m.file,
		func(w io.Writer) error { return m.shape.WriteCSV(c.Context, w, report.Rows, seed) }); err != nil {
		return err
	}
	if err := m.startServer(); err != nil {
		return err
	}
	defer m.server.close()
	runs := map[string][]load{}
	for round := range c.Int("rounds") {
		for _, name := range report.order {
			fmt.Fprintf(c.App.ErrWriter, "tsbench: round %d of %d: %s\n", round+1, c.Int("rounds"), name)
			l, err := m.load(name, fmt.Sprintf("%s_%d", name, round))
			if err != nil {
				return fmt.Errorf("load %s: %w", name, err)
			}
			runs[name] = append(runs[name], l)
		}
	}
	for name, loads := range runs {
		slices.SortFunc(loads, func(a, b load) int { return cmp.Compare(a.CPUPerRow, b.CPUPerRow) })
		report.Loads[name] = loads[(len(loads)-1)/2]
	}
	return show(c, report, report.writeText)
}

// startServer starts the null server and sets the environment for loads.
func (m *measuring) startServer() (err error) {
	args := []string{"null-server", "--latency", m.c.Duration("latency").String(), "--partitions",
		fmt.Sprint(m.c.Int("partitions"))}
	if m.task.reads {
		args = append(args, "--shape", m.shape.Name, "--rows", fmt.Sprint(m.c.Uint64("rows")))
	}
	if m.c.Bool("tls") {
		ca := filepath.Join(m.dir, "ca.pem")
		args, m.env = append(args, "--tls-ca", ca), append(m.env, "SSL_CERT_FILE="+ca)
	}
	m.server, err = serve(m.c.Context, []string{"TABLESTORE_ACCESS_KEY_ID=null", "TABLESTORE_ACCESS_KEY_SECRET=null"},
		args...)
	if err != nil {
		return err
	}
	var columns []string
	for _, c := range m.shape.Columns {
		columns = append(columns, c.Name+":"+[...]string{"integer", "double", "string", "string"}[c.Kind])
	}
	m.env = append(append(m.env, m.server.env...), "BENCH_FILE="+m.file, "BENCH_COLUMNS="+strings.Join(columns, ","),
		fmt.Sprint("BENCH_ROWS=", m.c.Uint64("rows")))
	return nil
}

// load loads the file into a separate table in one of the ways and measures the cost.
func (m *measuring) load(name, tableName string) (l load, err error) {
	usedFile := filepath.Join(m.dir, "used-"+tableName)
	env := append(slices.Clone(m.env), "BENCH_TABLE="+tableName)
	words := []string{self(), baseline}
	switch name {
	case external:
		words = []string{"/bin/sh", "-c", m.c.String("baseline-cmd")}
	case tool:
		env = append(env, usedEnv+"="+usedFile)
		names := strings.NewReplacer("TABLE", tableName, "FILE", m.file, "RUN", filepath.Join(m.dir, "run-"+tableName))
		words = []string{self(), tool}
		for word := range strings.FieldsSeq(m.task.words) {
			words = append(words, names.Replace(word))
		}
		words = slices.Insert(words, 3, m.c.StringSlice("load-flag")...)
	}
	before, err := m.server.counts()
	if err != nil {
		return l, err
	}
	r, err := finish(command(m.c.Context, env, words[0], words[1:]...))
	if err != nil {
		return l, err
	}
	after, err := m.server.counts()
	if err != nil {
		return l, err
	}
	rows, want := m.c.Uint64("rows"), int64(0)
	if m.task.writes {
		want = int64(rows)
	}
	again := after.Rows - before.Rows - want
	if again < 0 || again > 0 && name != external { // others repeat requests whose answers are late
		return l, fmt.Errorf("%d rows arrived, want %d", after.Rows-before.Rows, want)
	}
	var own struct {
		usage
		CPUSeconds     float64 `json:"cpu_seconds"`
		CPUWaitSeconds float64 `json:"cpu_wait_seconds"`
		Seconds        float64 `json:"seconds"`
	}
	_ = json.Unmarshal(r.stdout, &own) // an external command need not report anything
	if text, err := os.ReadFile(usedFile); err == nil {
		_ = json.Unmarshal(text, &own)
	}
	l = load{
		CPUPerRow: r.cpuSeconds * 1e6 / float64(rows), RowsPerSecond: float64(rows) / r.seconds,
		AllocsPerRow: float64(own.Allocations) / float64(rows), AllocBytesPerRow: float64(own.AllocatedBytes) / float64(rows),
		PeakRSSBytes: cmp.Or(own.PeakRSSBytes, r.peakRSS),
		Requests:     after.Requests - before.Requests, Connections: after.Connections - before.Connections, RowsAgain: again,
	}
	if own.Seconds > 0 {
		l.Wanted = (own.CPUSeconds + own.CPUWaitSeconds) / own.Seconds
	}
	return l, nil
}

func (r *costs) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d rows of shape %s\n\n", r.Rows, r.Shape)
	fmt.Fprintln(t, r.What+"\tCPU µs/row\tof tsimport\trows/s\tcores wanted\tallocs/row\tpeak MiB\tconnections\t")
	for _, name := range r.order {
		l, of := r.Loads[name], "-"
		if own := r.Loads[tool].CPUPerRow; own > 0 {
			of = fmt.Sprintf("%.2f", l.CPUPerRow/own)
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%.0f\t%.2f\t%.3f\t%.0f\t%d\t\n", name, l.CPUPerRow, of, l.RowsPerSecond, l.Wanted,
			l.AllocsPerRow, float64(l.PeakRSSBytes)/(1<<20), l.Connections)
	}
	return t.Flush()
}

// refused turns a usage error of the process into one of this command, which passes its flags on.
func refused(stderr string) error {
	return plan.Usagef("%s", strings.TrimPrefix(strings.TrimPrefix(client.OneLine(stderr), "tsimport: "), "tsbench: "))
}
