package cost

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/tablestore/client"
)

// The instance and keys of a null server, which signs its answers with them.
const (
	instance = "null"
	keyID    = "null"
	secret   = "null"
)

var keyVariables = []string{"TABLESTORE_ACCESS_KEY_ID=" + keyID, "TABLESTORE_ACCESS_KEY_SECRET=" + secret}

// Run generates the input, runs every load against one null server and measures the floor in between.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &measurement{cfg: &cfg, ctx: ctx, file: filepath.Join(cfg.Dir, "rows.csv")}
	if err := m.generate(); err != nil {
		return nil, err
	}
	var err error
	if m.server, err = startServer(ctx, &cfg); err != nil {
		return nil, err
	}
	defer m.server.close()
	loads, _ := cfg.loads() // checked before
	report := &Report{Shape: cfg.Shape.Name, Columns: len(cfg.Shape.Columns), Rows: cfg.Rows, What: cfg.What, Loads: map[string]*Load{}, order: loads}
	var floors []Floor
	runs := map[string][]Load{}
	for round := range cfg.Rounds {
		floor, err := measureFloor(m.file, cfg.Shape, cfg.Rows, cfg.What)
		if err != nil {
			return nil, err
		}
		floors = append(floors, floor)
		for _, name := range loads {
			cfg.Say.Line("round %d of %d: %s", round+1, cfg.Rounds, name)
			load, err := m.run(name, round)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("load %s: %w", name, err)
			}
			runs[name] = append(runs[name], load)
		}
	}
	report.finish(floors, runs)
	m.server.close()
	report.ServerCPUSeconds = m.server.cpu()
	return report, nil
}

type measurement struct {
	cfg    *Config
	ctx    context.Context
	file   string
	server *nullServer
}

func (m *measurement) generate() error {
	m.cfg.Say.Line("generating %d rows of %d columns", m.cfg.Rows, len(m.cfg.Shape.Columns))
	f, err := os.Create(m.file)
	if err != nil {
		return fmt.Errorf("generate input: %w", err)
	}
	err = m.cfg.Shape.WriteCSV(m.ctx, f, m.cfg.Rows, seed)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("generate input: %w", closeErr)
	}
	return err
}

// run loads the file into a table of its own in one of the ways and finds out what it used.
func (m *measurement) run(name string, round int) (l Load, err error) {
	tableName := fmt.Sprintf("%s_%d", name, round)
	before, err := m.server.counts()
	if err != nil {
		return l, err
	}
	ctx := m.ctx
	if name == External && m.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.cfg.Timeout)
		defer cancel()
	}
	cmd := m.command(ctx, name, tableName)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	seconds := time.Since(start).Seconds()
	if ctx.Err() != nil && m.ctx.Err() == nil {
		return l, fmt.Errorf("the command of --baseline-cmd did not end within --timeout %v: %s", m.cfg.Timeout, client.OneLine(stderr.String()))
	}
	if err != nil {
		return l, fmt.Errorf("%w: %s", err, client.OneLine(stderr.String()))
	}
	after, err := m.server.counts()
	if err != nil {
		return l, err
	}
	again := after.Rows - before.Rows - int64(m.cfg.written())
	if again < 0 || again > 0 && name != External { // others repeat requests whose answers they find late
		return l, fmt.Errorf("%d rows arrived, want %d", after.Rows-before.Rows, m.cfg.written())
	}
	l = measured(cmd.ProcessState, seconds, m.cfg.Rows)
	l.RowsAgain = again
	l.Requests, l.Connections = after.Requests-before.Requests, after.Connections-before.Connections
	var own struct {
		Allocations    int64 `json:"allocations"`
		AllocatedBytes int64 `json:"allocated_bytes"`
		PeakRSSBytes   int64 `json:"peak_rss_bytes"`

		CPUSeconds     float64 `json:"cpu_seconds"`
		CPUWaitSeconds float64 `json:"cpu_wait_seconds"`
		Seconds        float64 `json:"seconds"`
	}
	_ = json.Unmarshal(stdout.Bytes(), &own) // an external command need not say anything
	if text, err := os.ReadFile(m.usedFile(tableName)); err == nil {
		_ = json.Unmarshal(text, &own)
	}
	l.AllocsPerRow = float64(own.Allocations) / float64(m.cfg.Rows)
	l.AllocBytesPerRow = float64(own.AllocatedBytes) / float64(m.cfg.Rows)
	if own.Seconds > 0 {
		l.Wanted = (own.CPUSeconds + own.CPUWaitSeconds) / own.Seconds
	}
	l.PeakRSSBytes = cmp.Or(own.PeakRSSBytes, l.PeakRSSBytes)
	return l, nil
}

// UsedEnv names, in the environment, the file to which tsimport is to write what it has allocated. Commands whose output is theirs cannot say
// it there.
const UsedEnv = "TSIMPORT_BENCH_USED"

func (m *measurement) usedFile(tableName string) string {
	return filepath.Join(m.cfg.Dir, "used-"+tableName)
}

// command is the process of a load.
func (m *measurement) command(ctx context.Context, name, tableName string) *exec.Cmd {
	var cmd *exec.Cmd
	switch name {
	case Tool:
		cmd = m.toolCommand(tableName)
	case External:
		cmd = exec.CommandContext(ctx, "/bin/sh", "-c", m.cfg.Command)
		endWithChildren(cmd)
	default:
		cmd = exec.CommandContext(ctx, m.cfg.Binary, "baseline", name)
	}
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TABLESTORE_") || strings.HasPrefix(v, "ALIBABA_CLOUD_") || strings.HasPrefix(v, "BENCH_")
	})
	cmd.Env = append(append(cmd.Env, keyVariables...),
		"TABLESTORE_ENDPOINT="+m.server.endpoint, "TABLESTORE_INSTANCE="+instance,
		"BENCH_FILE="+m.file, "BENCH_TABLE="+tableName, "BENCH_ROWS="+fmt.Sprint(m.cfg.Rows), "BENCH_COLUMNS="+columnList(m.cfg.Shape))
	if name == Tool {
		cmd.Env = append(cmd.Env, UsedEnv+"="+m.usedFile(tableName))
	}
	if m.server.ca != "" {
		cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+m.server.ca)
	}
	if m.cfg.Procs > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", m.cfg.Procs))
	}
	return cmd
}

// columnList names the columns as the environment of a baseline has them: NAME:TYPE with commas between, the primary key
// first.
func columnList(s bench.Shape) string {
	var list []string
	for _, c := range s.Columns {
		list = append(list, c.Name+":"+[...]string{"integer", "double", "string", "string"}[c.Kind])
	}
	return strings.Join(list, ",")
}
