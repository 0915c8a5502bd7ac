package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"tsimport/extsort"
	"tsimport/intake"
	"tsimport/plan"
	"tsimport/shuffle/spill"
	"tsimport/table"
)

// CheckConfig is which inputs are looked at, and how.
type CheckConfig struct {
	Request  *plan.Request // as a load into a new table has it
	Unique   bool          // look for keys that come more than once
	Examples int           // of each kind, at most
	Memory   int64         // bytes of memory of the process
	TempDir  string        // where keys wait that memory has no room for; "" takes the system's
	TempMax  int64         // bytes of disk for that; 0 is no limit
	Progress *Progress     // kept up to date; may be nil
}

// CheckResult is what a look at inputs has found.
type CheckResult struct {
	OK       bool             `json:"ok"`   // nothing is rejected and no keys collide
	Read     int64            `json:"read"` // records
	Rejected int64            `json:"rejected"`
	Reasons  map[string]int64 `json:"reasons"` // rejected records by code
	Rejects  []RejectExample  `json:"rejects"` // the first ones

	Unique     bool        `json:"unique"`     // keys were looked at
	Keys       int64       `json:"keys"`       // different ones
	Repeated   int64       `json:"repeated"`   // records whose key came before, made of the same values
	Collisions int64       `json:"collisions"` // keys that were made of different values
	Colliding  int64       `json:"colliding"`  // records with such a key whose values are not those of its first record
	Examples   []Collision `json:"examples"`

	SpilledRows   int64   `json:"spilled_rows"`
	Seconds       float64 `json:"seconds"`
	RowsPerSecond float64 `json:"rows_per_second"`

	Notes []string `json:"notes,omitempty"`
}

// RejectExample is a record that a load would reject.
type RejectExample struct {
	Place
	Column  string `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Value   string `json:"value,omitempty"`
}

// Collision is a key and two records that have it, though the values that it is made of are different.
type Collision struct {
	Key   Key   `json:"key"`
	First Place `json:"first"`
	Other Place `json:"other"`
}

// Check reads inputs as a load does and says what it would reject. With Unique it also finds, exactly, the keys that
// records have in common.
func Check(ctx context.Context, cfg CheckConfig) (*CheckResult, error) {
	start := time.Now()
	if cfg.Progress == nil {
		cfg.Progress = new(Progress)
	}
	request := *cfg.Request
	request.Order, request.Memory, request.Keep = plan.LastWins, max(cfg.Memory/2, 1), plan.KeepNothing
	if cfg.Unique {
		request.Keep = plan.KeepKeyFields
	}
	p, err := plan.Make(ctx, &request, nil)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	sorter, err := extsort.New(extsort.Options{Memory: max(cfg.Memory/3, 1), Spill: spill.Options{Dir: cfg.TempDir, MaxBytes: cfg.TempMax}})
	if err != nil {
		return nil, err
	}
	c := &checker{cfg: &cfg, plan: p, sorter: sorter}
	c.result = &CheckResult{Unique: cfg.Unique, Reasons: map[string]int64{}, Rejects: []RejectExample{}, Examples: []Collision{}, Notes: append(p.Notes, p.Warnings...)}
	err = eachSplit(ctx, p, c.take)
	if err == nil && cfg.Unique {
		err = c.compare(ctx)
	}
	if err = errors.Join(err, sorter.Close()); err != nil {
		return nil, err
	}
	r := c.result
	r.OK = r.Rejected == 0 && r.Collisions == 0
	if r.Seconds = time.Since(start).Seconds(); r.Seconds > 0 {
		r.RowsPerSecond = float64(r.Read) / r.Seconds
	}
	return r, nil
}

// checker looks at the records of one plan.
type checker struct {
	cfg    *CheckConfig
	plan   *plan.Plan
	sorter *extsort.Sorter
	result *CheckResult
	splits places
	buf    []byte
}

// take looks at a split.
func (c *checker) take(p *intake.Parsed) error {
	number := c.splits.add(p.Split)
	r := c.result
	r.Read += int64(p.Records)
	r.Rejected += int64(len(p.Rejects))
	c.cfg.Progress.Read.Add(int64(p.Records))
	for _, reject := range p.Rejects {
		why := reject.Reason
		r.Reasons[why.Code]++
		if len(r.Rejects) < c.cfg.Examples {
			at := Place{p.Split.Source, p.Split.FirstRecord + int64(reject.Mark.Record) + 1}
			r.Rejects = append(r.Rejects, RejectExample{at, why.Column, why.Code, why.Message, why.Value})
		}
	}
	if !c.cfg.Unique {
		return nil
	}
	for _, b := range p.Blocks {
		for i := range b.Block.Rows {
			ref := table.Ref{Block: b.Block, Index: int32(i)}
			c.buf = binary.BigEndian.AppendUint64(c.buf[:0], position(number, ref.Row()))
			c.buf = append(c.buf, ref.Record()...)
			if err := c.sorter.Add(ref.Key(), c.buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare goes through the keys in order and looks at what the records of each are made of.
func (c *checker) compare(ctx context.Context) error {
	sorted, err := c.sorter.Sort()
	if err != nil {
		return err
	}
	r := c.result
	r.SpilledRows = sorted.Spilled()
	var key, first []byte // of the key's first record: its place and values
	collides := false
	it := sorted.Range(nil, nil)
	for n := 0; it.Next(); n++ {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.cfg.Progress.Compared.Add(1)
		switch value := it.Value(); {
		case r.Keys == 0 || !bytes.Equal(it.Key(), key):
			key, first, collides = append(key[:0], it.Key()...), append(first[:0], value...), false
			r.Keys++
		case bytes.Equal(value[8:], first[8:]):
			r.Repeated++
		default:
			r.Colliding++
			if collides {
				continue
			}
			collides = true
			r.Collisions++
			if len(r.Examples) < c.cfg.Examples {
				k, err := keyOf(c.plan.Schema.Key, key)
				if err != nil {
					return err
				}
				r.Examples = append(r.Examples, Collision{k, *c.splits.place(binary.BigEndian.Uint64(first)), *c.splits.place(binary.BigEndian.Uint64(value))})
			}
		}
	}
	return it.Err()
}
