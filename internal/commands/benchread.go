package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"tsimport/internal/table"
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
)

func benchReadInputCommand() *cli.Command {
	return &cli.Command{
		Name:      "read-input",
		Usage:     "measure how fast inputs can be read, without a table",
		ArgsUsage: "FILE...",
		Description: inputsHelp + "\nReads, converts and encodes every record as load does and writes none: no load can be faster\n" +
			"save. The first column stands in for a primary key unless --pk names one.",
		Flags: append(append(readFlags(), profileFlags()...), []cli.Flag{
			textsFlag("pk", "primary-key column `NAME[:TYPE]`, in order, 1 to 4 times"),
			&cli.StringFlag{Name: "order", Usage: "last-wins (one input after the other) or none (all of them in parallel, as load --order none reads)", Value: plan.LastWins.String()},
			&cli.BoolFlag{Name: "json", Usage: "print the measurement as JSON"},
		}...),
		Action: benchReadInput,
	}
}

// reading is what bench read-input measures.
type reading struct {
	Rows           int64   `json:"rows"` // rejected ones included
	Rejected       int64   `json:"rejected"`
	Bytes          int64   `json:"bytes"` // of the inputs as they are decompressed
	Seconds        float64 `json:"seconds"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	RowsPerSecond  float64 `json:"rows_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	CPUPerRow      float64 `json:"cpu_us_per_row"`
	AllocsPerRow   float64 `json:"allocs_per_row"`
	PeakRSSBytes   int64   `json:"peak_rss_bytes"`
	Procs          int     `json:"procs"`
}

func benchReadInput(c *cli.Context) (err error) {
	if !c.Args().Present() {
		return usagef("no input: name the files to read, or - for standard input")
	}
	stopProfiles, err := startProfiles(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfiles()) }()
	cfg, err := readInputConfig(c)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tsimport-bench-*")
	if err != nil {
		return fmt.Errorf("make a folder for rejects: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg.RunDir = filepath.Join(dir, "run")
	report, err := pipeline.Run(c.Context, cfg)
	if err != nil {
		return err
	}
	if report.Read == 0 {
		return usagef("there is no record to read")
	}
	rows := float64(report.Read)
	r := reading{
		Rows: report.Read, Rejected: report.Rejected, Bytes: report.BytesRead, Seconds: report.Seconds, CPUSeconds: report.CPUSeconds,
		RowsPerSecond: rows / report.Seconds, BytesPerSecond: float64(report.BytesRead) / report.Seconds,
		CPUPerRow: report.CPUSeconds * 1e6 / rows, AllocsPerRow: float64(report.Allocations) / rows,
		PeakRSSBytes: report.PeakRSSBytes, Procs: runtime.GOMAXPROCS(0),
	}
	if c.Bool("json") {
		return printIndented(c, r)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%d rows (%d rejected), %.1f MB in %.2f s: %.0f rows/s, %.0f MB/s, %.3f µs of CPU a row, %.3f allocations a row, peak %.0f MiB, %d processors\n",
		r.Rows, r.Rejected, float64(r.Bytes)/1e6, r.Seconds, r.RowsPerSecond, r.BytesPerSecond/1e6, r.CPUPerRow, r.AllocsPerRow, float64(r.PeakRSSBytes)/(1<<20), r.Procs)
	return err
}

// readInputConfig is a load that writes nothing, into a table that nobody asks for.
func readInputConfig(c *cli.Context) (cfg pipeline.Config, err error) {
	cfg = pipeline.Config{
		Inputs: c.Args().Slice(), DryRun: true,
		Target: plan.Target{Name: "nowhere", Table: "none", Absent: true, Create: true, Define: table.Definition{TimeToLive: -1, MaxVersions: 1}},
		Limits: pipeline.Limits{MaxErrors: pipeline.MaxErrors{Rows: -1}},
	}
	if cfg.Read, err = parseRead(c); err == nil {
		cfg.Write.Order, err = plan.ParseOrder(c.String("order"))
	}
	if err == nil {
		cfg.Target.Key, err = parseKey(textsOf(c, "pk"))
	}
	if err != nil {
		return cfg, usagef("%v", err)
	}
	if len(cfg.Target.Key) > 0 {
		return cfg, nil
	}
	if c.Args().First() == "-" {
		return cfg, usagef("standard input is read once: name a key column with --pk")
	}
	found, err := plan.Inspect(c.Context, c.Args().Slice()[:1], cfg.Read, false)
	if err != nil {
		return cfg, usagef("%v", err)
	}
	if len(found) == 0 || len(found[0].Columns) == 0 {
		return cfg, usagef("%s has no columns", c.Args().First())
	}
	cfg.Target.Key = []table.KeyColumn{{Name: found[0].Columns[0].Name}}
	return cfg, nil
}
