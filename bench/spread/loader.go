package spread

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// Summary is what tsimport says of its own load; everything else is counted by the engine.
type Summary struct {
	State           string  `json:"state"`
	Error           string  `json:"error,omitempty"`
	Read            int64   `json:"read"`
	Written         int64   `json:"written"`
	Rejected        int64   `json:"rejected"`
	Superseded      int64   `json:"superseded"`
	Unfinished      int64   `json:"unfinished"`
	RowsSent        int64   `json:"rows_sent"`
	Throttled       int64   `json:"throttled"`
	Requests        int64   `json:"requests"`
	Seconds         float64 `json:"seconds"`
	LastLaneSeconds float64 `json:"last_lane_seconds"` // until every partition had a row to write
	Recuts          int64   `json:"recuts"`
	SpilledRows     int64   `json:"spilled_rows"`
	Sections        int64   `json:"sections,omitempty"` // in which the input was read out of its order
	SpilledBytes    int64   `json:"spilled_bytes"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	PeakRSSBytes    int64   `json:"peak_rss_bytes"`
}

// loader is one run of `tsimport load` in a process of its own, as users run it.
type loader struct {
	config *Config
	engine *engine
	data   *dataset
	dir    string
	order  plan.Order

	started time.Time // when the process was started
	ended   time.Time
	summary Summary
}

// What tsimport load ends with when it was asked for what cannot be, and when some rows were rejected and all others
// written.
const (
	exitUsage   = 2
	exitRejects = 3
)

// run loads the dataset. An error leaves a summary if the load got so far; what the load calls bad usage is bad usage of
// the bench, whose flags and file are handed on.
func (l *loader) run(ctx context.Context) error {
	args := []string{"load", "--endpoint", l.engine.Endpoint, "--instance", l.engine.Instance, "--table", tableName,
		"--run-dir", filepath.Join(l.dir, "run"), "--json", "--quiet", "--max-errors", "-1", "--order", l.order.String()}
	for _, k := range l.data.pk {
		args = append(args, "--pk", k)
	}
	if l.config.Memory != "" {
		args = append(args, "--memory", l.config.Memory)
	}
	cmd := command(ctx, l.config.Binary, l.dir, append(args, "--", l.data.path)...)
	cmd.Env = append(cmd.Env, "TABLESTORE_ACCESS_KEY_ID="+l.engine.id, "TABLESTORE_ACCESS_KEY_SECRET="+l.engine.secret)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	l.started = time.Now()
	err := cmd.Run()
	l.ended = time.Now()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch cmd.ProcessState.ExitCode() {
	case exitUsage:
		return plan.Usagef("%s", strings.TrimPrefix(client.OneLine(stderr.String()), "tsimport: "))
	case exitRejects:
		err = nil // the comparison tells which rows are missing, and the summary how many were rejected
	}
	if jsonErr := json.Unmarshal(stdout.Bytes(), &l.summary); err == nil && jsonErr != nil {
		err = fmt.Errorf("its summary is unreadable: %w", jsonErr)
	}
	if err != nil {
		return fmt.Errorf("run tsimport load: %w: %s", err, client.OneLine(stderr.String()))
	}
	return nil
}
