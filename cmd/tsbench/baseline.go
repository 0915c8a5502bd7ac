package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"example.com/tsimport/pipeline/plan"
)

// The baseline uses typical settings: the maximum number of rows per request, and enough workers for a fast load.
const (
	batchRows       = 200
	baselineWorkers = 32
)

func baselineCommand() *cli.Command {
	return &cli.Command{
		Name:   baseline,
		Usage:  "load a file with the SDK, like a hand-written program",
		Hidden: true,
		Description: "The environment is that of client's --baseline-cmd; BENCH_KEYS names the columns of the primary key, " +
			"comma-separated, if it is not the first one, and BENCH_SECONDS says when to stop.",
		Action: loadBaseline,
	}
}

// handWritten is the baseline load. It relies on the SDK's retries, so a row on which the SDK gives up is lost.
type handWritten struct {
	sdk     *tablestore.TableStoreClient
	columns []string // NAME:TYPE, in the order of the file
	keys    []string
	lost    atomic.Int64
}

type outcome struct {
	usage
	Lost    int64 `json:"lost"`
	Stopped bool  `json:"stopped"`
}

func loadBaseline(c *cli.Context) error {
	h := &handWritten{columns: strings.Split(os.Getenv("BENCH_COLUMNS"), ",")}
	first, _, ok := strings.Cut(h.columns[0], ":")
	if !ok {
		return plan.Usagef("BENCH_COLUMNS: %q: want NAME:integer, :double or :string", h.columns[0])
	}
	h.keys = []string{first}
	if keys := os.Getenv("BENCH_KEYS"); keys != "" {
		h.keys = strings.Split(keys, ",")
	}
	ctx := c.Context
	if text := os.Getenv("BENCH_SECONDS"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return plan.Usagef("BENCH_SECONDS: %v", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer cancel()
	}
	h.sdk = tablestore.NewClientWithConfig(os.Getenv("TABLESTORE_ENDPOINT"), os.Getenv("TABLESTORE_INSTANCE"),
		os.Getenv("TABLESTORE_ACCESS_KEY_ID"), os.Getenv("TABLESTORE_ACCESS_KEY_SECRET"), "", nil)
	done := make(chan error, 1)
	go func() { done <- h.load(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done(): // requests in flight end with the process
		err = context.Cause(ctx)
	}
	stopped := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !stopped {
		return err
	}
	return json.NewEncoder(c.App.Writer).Encode(outcome{used(), h.lost.Load(), stopped})
}

func (h *handWritten) load(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan []*tablestore.PutRowChange)
	group.Go(func() error {
		err := h.read(ctx, batches)
		if err == nil {
			close(batches) // all rows are read; a stopped load leaves it open
		}
		return err
	})
	for range baselineWorkers {
		group.Go(func() error {
			for {
				select {
				case batch, ok := <-batches:
					if !ok {
						return nil
					}
					h.write(batch)
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
	}
	return group.Wait()
}

// read packs the records of the file into batches in order.
func (h *handWritten) read(ctx context.Context, batches chan<- []*tablestore.PutRowChange) error {
	file, err := os.Open(os.Getenv("BENCH_FILE"))
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.ReuseRecord = true // fields are copied
	var batch []*tablestore.PutRowChange
	for record := 0; ; record++ {
		fields, err := r.Read()
		ended := errors.Is(err, io.EOF)
		if err == nil && record > 0 { // skip the header
			var change *tablestore.PutRowChange
			change, err = h.change(fields)
			batch = append(batch, change)
		}
		if err != nil && !ended {
			return fmt.Errorf("read %s: record %d: %w", file.Name(), record, err)
		}
		if len(batch) == batchRows || ended && len(batch) > 0 {
			select {
			case batches <- batch:
				batch = nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if ended {
			return nil
		}
	}
}

func (h *handWritten) change(fields []string) (*tablestore.PutRowChange, error) {
	change := &tablestore.PutRowChange{TableName: os.Getenv("BENCH_TABLE"), PrimaryKey: new(tablestore.PrimaryKey)}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	values := map[string]any{}
	for i, column := range h.columns {
		name, kind, _ := strings.Cut(column, ":")
		var value any = fields[i]
		var err error
		switch kind {
		case "integer":
			value, err = strconv.ParseInt(fields[i], 10, 64)
		case "double":
			value, err = strconv.ParseFloat(fields[i], 64)
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(h.keys, name) {
			values[name] = value
		} else {
			change.AddColumn(name, value)
		}
	}
	for _, name := range h.keys {
		change.PrimaryKey.AddPrimaryKeyColumn(name, values[name])
	}
	return change, nil
}

func (h *handWritten) write(batch []*tablestore.PutRowChange) {
	request := new(tablestore.BatchWriteRowRequest)
	for _, change := range batch {
		request.AddRowChange(change)
	}
	response, err := h.sdk.BatchWriteRow(request)
	if err != nil {
		h.lost.Add(int64(len(batch)))
		return
	}
	for _, results := range response.TableToRowsResult {
		for _, r := range results {
			if !r.IsSucceed {
				h.lost.Add(1)
			}
		}
	}
}
