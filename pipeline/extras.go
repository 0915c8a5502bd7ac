package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/plainbuffer"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/ratelimit"
	"tsimport/writer"
)

// extras is what a load keeps of rows that may not simply be sent twice: those whose number the service makes, and updates
// in a table that keeps several versions. The dispatcher alone touches it while rows are under way.
type extras struct {
	writer.Options
	key      []table.KeyColumn
	stamps   *stamps             // of updates; nil where the service may give them its own
	rowBytes int                 // that are added to a row when it is sent
	rowExtra func(table.Ref) int // and to this one; nil is none
	doubts   *rundir.Journal     // rows that were sent more than once; nil where that does no harm, or is not looked after
	returned *rundir.Journal     // keys that the service has made; nil if nobody asked for them

	line  []byte
	begun int64 // when the first attempt began, in milliseconds by the service's clock
}

// markFraming is what a cell takes in a request beside its name and value.
const markFraming = 24

// extrasKept is what a load that goes on has to know: how long the files of extras are, the first file with timestamps of
// updates and when the first attempt began. Zero is a load that begins.
type extrasKept struct {
	doubts, returned int64
	stamps           int64
	begun            time.Time
	run              string // that marks name
	marksBegun       int64  // when the first attempt began, in milliseconds by the service's clock; 0 is unknown
	past             *writer.Earlier
}

func newExtras(cfg *Config, h *hooks, planned *plan.Plan, folder *rundir.Folder, report *Report, sdk *tablestore.TableStoreClient, clock *client.Clock, kept extrasKept) (x *extras, err error) {
	x = &extras{key: planned.Schema.Key}
	x.Size = new(writer.Size)
	if cfg.DryRun {
		return x, nil
	}
	if planned.Restamp {
		now := h.serviceTime
		if now == nil {
			now = serviceTime(clock)
		}
		x.Stamps = writer.NewStamps(now, planned.Deviation())
		if x.stamps, err = openStamps(filepath.Join(folder.Path, rundir.StampsDir), kept.stamps, x.Stamps); err != nil {
			return nil, err
		}
		x.rowExtra = func(r table.Ref) int { return plainbuffer.StampBytes(r.Body()) }
	}
	if cfg.Write.Mode == table.Increment {
		x.Increments = writer.NewIncrements(sdk, planned.Mark, kept.run)
		x.rowBytes = len(planned.Mark) + table.MaxMarkBytes + markFraming + x.Increments.ConditionBytes()
		report.MarkColumn = planned.Mark
		return x, nil
	}
	at := planned.Schema.Numbered
	if at == 0 {
		return x, nil
	}
	x.AutoIncrement = writer.NewAutoIncrement(sdk, cfg.Target.Table, at, planned.Mark, table.Marker{Job: planned.Job(), Run: kept.run})
	x.AutoIncrement.LookFirst, x.AutoIncrement.Parallel = cfg.Write.Marks.LookFirst, lookUps(cfg.Write.Concurrency)
	x.begun = marksBegun(clock, kept)
	x.AutoIncrement.Begun, x.AutoIncrement.Earlier = x.begun, kept.past
	cfg.Watch.Progress.numbers.Store(x.AutoIncrement)
	report.MarkColumn, report.ReturnedKeys = planned.Mark, cfg.Write.Marks.ReturnedKeys
	if planned.Mark != "" {
		x.rowBytes = len(planned.Mark) + table.MaxMarkBytes + markFraming
		if x.doubts, err = rundir.OpenJournal(filepath.Join(folder.Path, rundir.DoubtsFile), kept.doubts); err != nil {
			return nil, err
		}
	}
	if cfg.Write.Marks.ReturnedKeys != "" {
		if x.returned, err = openReturned(cfg.Write.Marks.ReturnedKeys, x.key, kept.returned); err != nil {
			return nil, errors.Join(err, x.close())
		}
	}
	return x, nil
}

// clockUnknown is how far the service's clock may be behind this machine's where no answer has a date: a service refuses
// requests long before.
const clockUnknown = time.Hour

// marksBegun returns what no mark of the load can be older than, in milliseconds by the service's clock.
func marksBegun(clock *client.Clock, kept extrasKept) int64 {
	earliest, _, known := clock.Range(time.Now())
	switch {
	case kept.marksBegun != 0:
		return kept.marksBegun
	case !kept.begun.IsZero():
		return kept.begun.Add(-clockUnknown).UnixMilli()
	case !known:
		return earliest.Add(-clockUnknown).UnixMilli()
	}
	return earliest.UnixMilli()
}

// openReturned makes the file of returned keys, or cuts that of the load that goes on to what it keeps. Another one that is
// there is not touched: it may be the only place where the keys of an earlier load stand.
func openReturned(path string, key []table.KeyColumn, keep int64) (*rundir.Journal, error) {
	if keep > 0 {
		return rundir.OpenExclusive(path, keep)
	}
	header := []string{"file", "record"}
	for _, k := range key {
		header = append(header, k.Name)
	}
	line := csvLine(header)
	j, err := rundir.OpenExclusive(path, 0, func(f *os.File) error {
		if !begunOnly(f, line) {
			return fmt.Errorf("keep returned keys: %s exists; give another file, or delete it", path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := j.Append(line); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// begunOnly reports whether a file holds no key: it is not there, or a load was killed when it had written no more than the
// header, or a part of it.
func begunOnly(f *os.File, header []byte) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(len(header)) {
		return false
	}
	text := make([]byte, info.Size())
	_, err = f.ReadAt(text, 0)
	return err == nil && bytes.HasPrefix(header, text)
}

func csvLine(fields []string) []byte {
	var b lineBuffer
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // into memory
	w.Flush()
	return b
}

type lineBuffer []byte

func (b *lineBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// written takes a row that is written.
func (x *extras) written(r table.Ref, o table.Outcome, report *Report) error {
	if o.Restamped {
		report.ExtraVersions++
	}
	if x.AutoIncrement == nil {
		return nil
	}
	if o.Repeated && x.doubts == nil {
		report.MaybeTwice++
	}
	if o.Repeated && x.doubts != nil {
		doubt, err := x.AutoIncrement.Doubt(r, o)
		if err != nil {
			return err
		}
		x.line = doubt.Append(x.line[:0])
		if err := x.doubts.Append(x.line); err != nil {
			return err
		}
	}
	if x.returned == nil {
		return nil
	}
	row, err := plainbuffer.Decode(r.Body())
	if err != nil {
		return err
	}
	fields := []string{r.Block.Split.Source, strconv.FormatInt(r.Number()+1, 10)}
	for i, c := range row.Key {
		switch {
		case i == x.AutoIncrement.Column && o.Number == 0:
			fields = append(fields, "") // sent blindly, and the answer did not say
		case i == x.AutoIncrement.Column:
			fields = append(fields, strconv.FormatInt(o.Number, 10))
		case c.Value.Type == table.Integer:
			fields = append(fields, strconv.FormatInt(c.Value.Int, 10))
		case c.Value.Type == table.Binary:
			fields = append(fields, base64.StdEncoding.EncodeToString(c.Value.Bytes))
		default:
			fields = append(fields, string(c.Value.Bytes))
		}
	}
	return x.returned.Append(csvLine(fields))
}

// sweepRows is how many rows are looked up at a time, for those of one ordering key come in one scan.
const sweepRows = 50_000

// sweep looks up every row that was sent more than once and deletes surplus copies. It begins when no attempt can still be
// applied. Swept says that there were such rows.
func (x *extras) sweep(ctx context.Context, cfg *Config, report *Report) (swept bool, err error) {
	if x.stamps != nil {
		report.Stamp = x.stamps.Last()
	}
	if x.doubts == nil || x.doubts.Length() == 0 {
		return false, nil
	}
	return true, x.doubts.Read(func(r *bufio.Reader) error {
		for more := true; more; {
			groups := map[string][]writer.Doubt{}
			for range sweepRows {
				d, err := writer.ReadDoubt(r)
				if err == io.EOF {
					more = false
					break
				}
				if err != nil {
					return err
				}
				groups[string(d.Ordering)] = append(groups[string(d.Ordering)], d)
			}
			if err := x.sweepGroups(ctx, cfg, report, groups); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweepGroups sweeps the rows of many ordering keys, of each many at a time.
func (x *extras) sweepGroups(ctx context.Context, cfg *Config, report *Report, groups map[string][]writer.Doubt) error {
	list := slices.Collect(maps.Values(groups))
	if len(list) >= sweepTableFrom {
		deleted, done, err := x.AutoIncrement.SweepTable(slices.Concat(list...))
		report.SurplusDeleted += int64(deleted)
		if done || err != nil && !writer.SweepAgain(err) {
			return err
		}
	}
	var mu sync.Mutex
	var failed error
	x.AutoIncrement.Parallel(len(list), func(i int) {
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop {
			return
		}
		deleted, err := x.sweepKey(ctx, cfg, list[i])
		mu.Lock()
		defer mu.Unlock()
		report.SurplusDeleted += int64(deleted)
		cfg.Watch.Progress.Swept.Add(int64(len(list[i])))
		if failed == nil {
			failed = err
		}
	})
	return failed
}

// sweepTableFrom is for how many ordering keys all of a table is read, if it is not far larger.
const sweepTableFrom = 16

// sweepKey sweeps the rows of one ordering key, again and again while that can help.
func (x *extras) sweepKey(ctx context.Context, cfg *Config, doubts []writer.Doubt) (all int, err error) {
	patience := ratelimit.Patience{For: cfg.Write.RetryFor}
	for attempt := 1; ; attempt++ {
		deleted, err := x.AutoIncrement.Sweep(doubts)
		all += deleted
		if err == nil {
			return all, nil
		}
		if !writer.SweepAgain(err) || patience.Over(time.Now()) {
			return all, fmt.Errorf("look for rows of table %s that were written twice: %w", cfg.Target.Table, err)
		}
		timer := time.NewTimer(cfg.Write.Backoff.After(attempt))
		select {
		case <-timer.C:
		case <-cfg.Drain.Done():
			timer.Stop()
			return all, context.Cause(cfg.Drain)
		case <-ctx.Done():
			timer.Stop()
			return all, context.Cause(ctx)
		}
	}
}

// keep enters into a checkpoint how far the files go, which are flushed so far.
func (x *extras) keep(counters map[string]int64) error {
	if x.stamps != nil {
		counters[stampFiles] = x.stamps.from
	}
	var err error
	if x.AutoIncrement != nil {
		counters[marksBegunAt] = x.begun
	}
	if x.doubts != nil {
		counters[doubtBytes], err = x.doubts.Length(), x.doubts.Flush()
	}
	if x.returned != nil && err == nil {
		counters[returnedBytes], err = x.returned.Length(), x.returned.Flush()
	}
	return err
}

// files are the files that must be synced before a checkpoint says how far they go.
func (x *extras) files() (files []*os.File) {
	for _, j := range []*rundir.Journal{x.doubts, x.returned} {
		if j != nil {
			files = append(files, j.File())
		}
	}
	if x.stamps != nil && x.stamps.file != nil {
		files = append(files, x.stamps.file)
	}
	return files
}

// close closes the files.
func (x *extras) close() error {
	err := x.stamps.close()
	for _, j := range []*rundir.Journal{x.doubts, x.returned} {
		if j != nil {
			err = errors.Join(err, j.Close())
		}
	}
	return err
}
