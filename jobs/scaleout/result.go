package scaleout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"sync"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/reader/source"
)

// done holds the fields common to all results.
type done struct {
	Version  int        `json:"version"`
	Plan     string     `json:"plan"` // its ID
	Attempt  string     `json:"attempt"`
	By       string     `json:"by"` // name of the process
	Started  time.Time  `json:"started"`
	Ended    time.Time  `json:"ended"`
	CPU      float64    `json:"cpu_seconds"`
	Rejects  []keptList `json:"rejects,omitempty"` // objects with rejected records
	Rejected int64      `json:"rejected"`
	Seams    int64      `json:"seams,omitempty"` // rejects at seams of joined files, which --max-errors does not count
	// LateUntil is the time, by the service's clock, until which a lost request may repeat a row.
	LateUntil time.Time `json:"late_until,omitzero"`
}

func (d *done) head() *done { return d }

type result interface{ head() *done }

// splitResult is the object splits/NNNNNN.json, the result of reading a split.
type splitResult struct {
	done
	Split int   `json:"split"`
	Read  int64 `json:"read"`
	Rows  int64 `json:"rows"` // number of rows in runs
	Bytes int64 `json:"bytes"`
	// ExpiredCells counts cells that were omitted because the table would not accept them.
	ExpiredCells int64            `json:"expired_cells,omitempty"`
	Objects      []runfile.Object `json:"objects,omitempty"`
	Index        runfile.Object   `json:"index,omitzero"` // locates the rows of each shard in the objects
	// Snapshots are the source's snapshots from which the split was read, if any.
	Snapshots []source.Snapshot `json:"snapshots,omitempty"`
	// Direct is the result of writing the rows, in a load without runs.
	Direct *direct `json:"direct,omitempty"`
}

// reducedResult is the object writing/NNNN/reduced.json: the rows of a shard to send, each key once.
type reducedResult struct {
	done
	Shard      int              `json:"shard"`
	From       int64            `json:"from"` // number of rows in the runs
	Rows       int64            `json:"rows"`
	Superseded int64            `json:"superseded"`
	Bytes      int64            `json:"bytes"`
	Objects    []runfile.Object `json:"objects,omitempty"`
	Frames     []frame          `json:"frames,omitempty"`
}

// frame is a group of rows of a reduced run that are read together.
type frame struct {
	At    runfile.Extent `json:"at"`
	First []byte         `json:"first"` // ordering keys
	Last  []byte         `json:"last"`
}

// shardResult is the object shards/NNNN.json, the result of writing a shard.
type shardResult struct {
	done
	Shard      int   `json:"shard"`
	From       int64 `json:"from"` // number of rows in the runs
	Superseded int64 `json:"superseded"`
	written
}

type written struct {
	Written   int64                `json:"written"`
	Refused   int64                `json:"refused"` // rows rejected by the service or a limit
	Attempts  int                  `json:"attempts"`
	WriteCU   int64                `json:"write_cu"`
	Requests  int64                `json:"requests"`
	RowsSent  int64                `json:"rows_sent"`
	BytesSent int64                `json:"bytes_sent"`
	Throttled int64                `json:"throttled"`
	Retried   int64                `json:"retried"`
	Seconds   float64              `json:"seconds"` // duration of the last attempt
	Reasons   []ledger.ReasonCount `json:"reasons,omitempty"`
	Maybe     int64                `json:"maybe_applied,omitempty"`
	Expired   int64                `json:"expired_cells,omitempty"` // cells omitted when their rows were written
}

// direct is the result of writing the rows of a split without runs.
type direct struct {
	Superseded int64 `json:"superseded"`
	written
}

// compareResult is the object verify/NNNN.json, the result of comparing a shard with the table.
type compareResult struct {
	done
	Shard int `json:"shard"`
	Comparison
}

type difference struct {
	Kind    string   `json:"kind"`
	Key     string   `json:"key"`
	Columns []string `json:"columns,omitempty"` // columns that differ
}

func splitName(i int) string   { return fmt.Sprintf("splits/%06d.json", i) }
func shardName(i int) string   { return fmt.Sprintf("shards/%04d.json", i) }
func compareName(i int) string { return fmt.Sprintf("verify/%04d.json", i) }

// Folders of leases, checkpoints and reduced runs. Results are in other folders, because these are listed often.
const (
	readingFolder   = "reading"
	writingFolder   = "writing"
	comparingFolder = "comparing"
)

func splitFolder(i int) string   { return fmt.Sprintf(readingFolder+"/%06d", i) }
func shardFolder(i int) string   { return fmt.Sprintf(writingFolder+"/%04d", i) }
func compareFolder(i int) string { return fmt.Sprintf(comparingFolder+"/%04d", i) }

const reducedName = "reduced.json"

// readResult reads the result of a task. It returns false if there is none.
func (j *Job) readResult(ctx context.Context, store jobdir.Store, name string, to result) (there bool, err error) {
	there, err = read(ctx, store, name, to)
	if there && to.head().Plan != j.Plan.ID {
		return false, progress.Unfitf("%s of %s belongs to another job: the directory mixes two jobs", name, store)
	}
	return there, err
}

func read(ctx context.Context, store jobdir.Store, name string, to any) (there bool, err error) {
	text, err := store.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s of %s: %w", name, store, err)
	}
	err = progress.Decode(fmt.Sprintf("%s of %s", name, store), text, planVersion, to, anotherJob)
	return err == nil, err
}

// commit stores the result of a task. If another attempt was faster, its result counts and is read into r.
func (j *Job) commit(ctx context.Context, store jobdir.Store, name string, r result) error {
	err := putJSON(ctx, store.PutAbsent, name, r)
	if errors.Is(err, jobdir.ErrExists) {
		reflect.ValueOf(r).Elem().SetZero()
		_, err = j.readResult(ctx, store, name, r)
		return err
	}
	if err != nil {
		return fmt.Errorf("store %s in %s: %w", name, store, err)
	}
	return nil
}

func putJSON(ctx context.Context, put func(ctx context.Context, name string, body []byte) error, name string,
	v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return put(ctx, name, append(text, '\n'))
}

// known caches the results of tasks, which never change once written.
type known struct {
	mu      sync.Mutex
	splits  map[int]*splitResult
	written map[int]*shardResult
}

func newKnown() *known {
	return &known{splits: map[int]*splitResult{}, written: map[int]*shardResult{}}
}

// cached returns the result of a task, from the cache if possible, or nil if the task is not done.
func cached[T any, R interface {
	*T
	result
}](ctx context.Context, j *Job, all map[int]R, i int, name string, sound func(R) bool) (R, error) {
	j.known.mu.Lock()
	r := all[i]
	j.known.mu.Unlock()
	if r != nil {
		return r, nil
	}
	r = R(new(T))
	there, err := j.readResult(ctx, j.store, name, r)
	if !there || err != nil {
		return nil, err
	}
	if !sound(r) {
		return nil, progress.Unfitf("%s of %s is damaged: its counts do not balance", name, j.store)
	}
	j.known.mu.Lock()
	defer j.known.mu.Unlock()
	all[i] = r
	return r, nil
}

func (j *Job) newDone(attempt string) done {
	return done{Version: planVersion, Plan: j.Plan.ID, Attempt: attempt, By: j.o.Owner, Started: time.Now().UTC()}
}
