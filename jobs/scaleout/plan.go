package scaleout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/reader/source"
)

// Names of objects in a job directory.
const (
	PlanName    = "plan.json" // marks a job directory
	stopName    = "stop"
	summaryName = "summary.json"
	pageName    = "report.html"
)

// planVersion is the version of all objects in a job directory.
const planVersion = 1

// former returns the plan's decisions for a process that prepares the load again.
func (p *Plan) former() *pipeline.Former {
	return &pipeline.Former{Job: p.Job, Division: p.Division}
}

// Plan is the object plan.json, made once for all processes. Its many fields are the contract between them.
type Plan struct {
	Version int       `json:"version"`
	Program string    `json:"program"` // version of tsimport; workers must have the same
	ID      string    `json:"id"`      // all other objects of the job contain it
	Planned time.Time `json:"planned"`

	// Endpoint and Instance identify the service, by flags, environment or profile; "" if each table names its own.
	Endpoint string `json:"endpoint,omitempty"`
	Instance string `json:"instance,omitempty"`

	Job *checkpoint.Job `json:"job"` // the request, and the facts on which rows depend
	// TableCreated is the table's creation time. It is 0 if the service does not report it.
	TableCreated int64 `json:"table_created,omitempty"`
	Verify       bool  `json:"verify,omitempty"` // compare the table with the inputs at the end

	// Direct is set if splits are written as they are read, without shards, because the order of rows does not matter.
	Direct bool `json:"direct,omitempty"`
	// Unique is set if keys are unique, or any row of a key may win, so that runs need not be reduced.
	Unique bool `json:"unique,omitempty"`

	Budget *Budget `json:"budget,omitempty"` // limit of each process; nil means none

	Workers   int              `json:"workers"` // expected number of processes
	MaxErrors ledger.MaxErrors `json:"max_errors"`

	Key    []table.KeyColumn `json:"key"`    // key of the table
	Inputs []string          `json:"inputs"` // names of the sources, by ordinal
	// Division is the origin's division of the sources, the same for all processes. It is nil for files.
	Division []byte `json:"division,omitempty"`
	// Live is set if the sources change while they are read.
	Live     bool            `json:"live,omitempty"`
	Readers  int             `json:"readers,omitempty"` // maximum concurrent readers of a database; 0 means any number
	Position source.Position `json:"position,omitzero"` // place from which the sources are followed

	Bytes  int64   `json:"bytes"` // size of all inputs
	Splits []Split `json:"splits"`
	Shards []Shard `json:"shards"`
	Bounds []Bound `json:"bounds"` // first key of each range except the first, ascending
}

// Split is a part of the inputs: a range of one source, or whole sources.
type Split struct {
	Parts []Part `json:"parts"`
	Bytes int64  `json:"bytes"` // approximate input bytes
}

// Part is a range of consecutive records of one source.
type Part struct {
	Source  int   `json:"source"` // ordinal of the source
	Record  int64 `json:"record"` // number of the first record, from 0
	Line    int64 `json:"line,omitempty"`
	Offset  int64 `json:"offset,omitempty"`
	Records int64 `json:"records"` // -1 means to the end of the source
}

func (p Part) from() source.Place {
	return source.Place{Record: p.Record, Line: p.Line, Offset: p.Offset}
}

// Shard is a set of key ranges that only one process writes.
type Shard struct {
	Ranges []int   `json:"ranges"` // 0 is the range before the first bound
	Weight float64 `json:"weight"` // share of the sampled rows
	// HotKey is set if the shard has only one value of the first key column, because that value has so many rows.
	HotKey string `json:"hot_key,omitempty"`
}

// Bound is the value of the first key column at which a range begins.
type Bound struct {
	Type  table.Type `json:"type"`
	Int   int64      `json:"int,omitempty"`
	Bytes []byte     `json:"bytes,omitempty"`
}

type shardMap struct {
	ranges *partitioner.Map
	shard  []int // shard of each range
}

func (p *Plan) shardMap() (*shardMap, error) {
	var bounds []table.Value
	for _, b := range p.Bounds {
		bounds = append(bounds, table.Value{Type: b.Type, Int: b.Int, Bytes: b.Bytes})
	}
	if p.Direct {
		return &shardMap{ranges: partitioner.NewMap(nil), shard: []int{0}}, nil
	}
	m := &shardMap{ranges: partitioner.NewMap(bounds), shard: make([]int, len(bounds)+1)}
	owned := 0
	for i, s := range p.Shards {
		for _, r := range s.Ranges {
			if r < 0 || r >= len(m.shard) {
				return nil, progress.Unfitf("%s is damaged: shard %d has a range %d", PlanName, i, r)
			}
			m.shard[r] = i
			owned++
		}
	}
	if m.ranges.Len() != len(m.shard) || owned != len(m.shard) {
		return nil, progress.Unfitf("%s is damaged: its ranges are not divided over its shards", PlanName)
	}
	return m, nil
}

// sameProgram refuses a job that another version of tsimport has planned.
func sameProgram(store jobdir.Store, planned, own string) error {
	if planned == own {
		return nil
	}
	return progress.Unfitf("%s was planned by tsimport %s, and this is %s: all processes of a job must have the same "+
		"version", store, planned, own)
}

// anotherJob is the advice for a directory that cannot be used.
const anotherJob = "plan a new job in another directory"

var errNoPlan = errors.New("it has no " + PlanName)

// ReadPlan reads the plan of a job directory.
func ReadPlan(ctx context.Context, store jobdir.Store) (*Plan, error) {
	p := new(Plan)
	there, err := read(ctx, store, PlanName, p)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, progress.Unfitf("%s is not a job directory: %w; plan one with tsimport load --job-dir", store, errNoPlan)
	}
	if p.ID == "" || p.Job == nil || len(p.Splits) == 0 || p.Direct != (len(p.Shards) == 0) {
		return nil, progress.Unfitf("%s of %s is damaged: required fields are missing", PlanName, store)
	}
	return p, nil
}

// keepPlan stores the plan, unless there is one, and returns the stored one.
func keepPlan(ctx context.Context, store jobdir.Store, p *Plan) (*Plan, error) {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return nil, err
	}
	err = store.PutAbsent(ctx, PlanName, append(text, '\n'))
	if errors.Is(err, jobdir.ErrExists) {
		return ReadPlan(ctx, store)
	}
	if err != nil {
		return nil, fmt.Errorf("store the plan in %s: %w", store, err)
	}
	return p, nil
}

// checkEmpty reports whether a directory has a plan. Without one, it refuses objects except those with prefixes in but.
func checkEmpty(ctx context.Context, store jobdir.Store, plan string, but ...string) (planned bool, err error) {
	names, err := store.List(ctx, "")
	if err != nil {
		return false, fmt.Errorf("list %s: %w", store, err)
	}
	if slices.Contains(names, plan) {
		return true, nil
	}
	but = append(but, "probe/")
	at := slices.IndexFunc(names, func(name string) bool {
		return !slices.ContainsFunc(but, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	if at < 0 {
		return false, nil
	}
	return false, progress.Unfitf("%s has no %s, but it is not empty: there is %s; it may be an incomplete copy, "+
		"or belong to another job; name an empty directory", store, plan, names[at])
}
