package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
)

type CheckConfig struct {
	Request  *plan.Request // request of a load into a new table
	Unique   bool          // look for duplicate keys
	Examples int           // maximum number of examples of each kind
	Memory   int64         // memory of the process, in bytes
	TempDir  string        // folder for keys that do not fit in memory; "" means the system's
	TempMax  int64         // maximum bytes on disk; 0 means no limit
	Progress *Progress     // if not nil, kept up to date
}

type CheckResult struct {
	OK       bool             `json:"ok"`   // no record is rejected and no keys collide
	Read     int64            `json:"read"` // records read
	Rejected int64            `json:"rejected"`
	Reasons  map[string]int64 `json:"reasons"` // rejected records by code
	Rejects  []RejectExample  `json:"rejects"` // the first rejected records

	HotKeys []HotKey `json:"hot_keys"` // partition-key values frequent enough to be hot spots

	Unique     bool        `json:"unique"`     // keys were checked for duplicates
	Keys       int64       `json:"keys"`       // distinct keys
	Repeated   int64       `json:"repeated"`   // records whose key is made of the same values as an earlier record's
	Equal      int64       `json:"equal"`      // repeated rows equal to the first row of their key
	Different  int64       `json:"different"`  // repeated rows that differ in other columns
	Repeats    []Repeat    `json:"repeats"`    // examples, different ones first
	Collisions int64       `json:"collisions"` // keys made of different values
	Colliding  int64       `json:"colliding"`  // records with such a key, made of other values than in its first record
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

// Collision is a key with two records whose key columns were made of different values.
type Collision struct {
	Table string `json:"table,omitempty"` // set if there are several tables
	Key   Key    `json:"key"`
	First Place  `json:"first"`
	Other Place  `json:"other"`
}

// Repeat is a key with two records made of the same values.
type Repeat struct {
	Collision
	Equal bool `json:"equal"` // the rows are equal
}

type HotKey struct {
	Column string  `json:"column"`
	Value  string  `json:"value"`
	Share  float64 `json:"share"` // share of the sampled rows
}

// Check reads inputs as a load would. It reports the records that a load would reject and, with Unique, duplicate keys.
func Check(ctx context.Context, cfg CheckConfig) (*CheckResult, error) {
	start := time.Now()
	cfg.Progress = cmp.Or(cfg.Progress, new(Progress))
	request := *cfg.Request
	request.Order, request.Memory, request.Keep = plan.LastWins, max(cfg.Memory/2, 1), plan.KeepKey
	request.Reading = cfg.Memory // as for a load, which otherwise might accept records that are rejected here
	if cfg.Unique {
		request.Keep = plan.KeepKeyFields
	}
	p, err := plan.Make(ctx, &request, nil)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for _, s := range p.Sources {
		if s.About().Pieces > checkPiece {
			s.SetSplitBytes(checkPiece)
		}
	}
	unique, notes := cfg.Unique, append(p.Notes, p.Warnings...)
	if unique && p.Schema.Numbered > 0 {
		unique, notes = false,
			append(notes, fmt.Sprintf("keys are not compared: the service numbers the records (%s), so all keys differ",
				p.Schema.Key[p.Schema.Numbered].Name))
	}
	sorter, err := extsort.New(extsort.Options{Memory: max(cfg.Memory/3, 1), Spill: spill.Options{Dir: cfg.TempDir,
		MaxBytes: cfg.TempMax}})
	if err != nil {
		return nil, err
	}
	c := &checker{cfg: &cfg, plan: p, sorter: sorter, distinct: newDistinct(cfg.Memory / hashShare),
		hot: partitioner.NewHotKeys(p.Schema.Key[0].Type), seed: maphash.MakeSeed()}
	c.result = &CheckResult{Unique: unique, Reasons: map[string]int64{}, Rejects: []RejectExample{}, HotKeys: []HotKey{},
		Repeats: []Repeat{}, Examples: []Collision{}, Notes: notes}
	err = eachSplit(ctx, p, intake.Sums{}, c.take)
	if err == nil && unique {
		err = c.compare(ctx)
	}
	for _, h := range c.hot.ReportWhole() {
		c.result.HotKeys = append(c.result.HotKeys, HotKey{p.Schema.Key[0].Name, plan.ShowKey(h.Value), h.Share})
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

type checker struct {
	cfg      *CheckConfig
	plan     *plan.Plan
	sorter   *extsort.Sorter
	distinct *distinct
	result   *CheckResult
	hot      *partitioner.HotKeys
	seed     maphash.Seed // seed for the hashes of rows
	splits   []*table.Split
	told     bool // the sorter has been told the expected size
	buf      []byte
}

// checkPiece is the number of bytes of text that are read at once. They fit in a processor's cache and yield few rows.
const checkPiece = 256 << 10

// hashShare is a divisor: hashes of keys may use 1/hashShare of the memory.
const hashShare = 16

// Offsets in a record's data in the sorter: position, line, hash of the row, values from which the key was made.
const (
	keptLine   = 8
	keptHash   = 12
	keptFields = 20
)

func (c *checker) take(p *intake.Parsed) error {
	c.splits = append(c.splits, p.Split)
	r := c.result
	r.Read += int64(p.Records)
	r.Rejected += int64(len(p.Rejects))
	c.cfg.Progress.Read.Add(int64(p.Records))
	for _, reject := range p.Rejects {
		why := reject.Reason
		r.Reasons[why.Code]++
		if len(r.Rejects) < c.cfg.Examples {
			at := c.placeIn(p.Split, reject.Span.Record, reject.Span.Line)
			r.Rejects = append(r.Rejects, RejectExample{at, why.Column, why.Code, why.Message, why.Value})
		}
	}
	if !c.told && c.result.Unique {
		rows := expect(c.sorter, c.plan, p, keptFields-8) // without the 8 bytes of the body, which is a hash
		c.told = rows > 0
		c.distinct.expect(rows + rows/16)
	}
	for _, b := range p.Blocks {
		for i := range b.Block.Rows {
			if err := c.row(table.Ref{Block: b.Block, Index: int32(i)}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) row(ref table.Ref) error {
	key := ref.Key()
	if c.plan.Tables != nil {
		_, key = table.CutTable(key)
	}
	c.hot.Add(key, 0)
	if !c.result.Unique {
		return nil
	}
	c.distinct.add(ref.Row().Hash)
	c.buf = binary.BigEndian.AppendUint64(c.buf[:0], position(len(c.splits)-1, ref.Row()))
	c.buf = binary.BigEndian.AppendUint32(c.buf, ref.Row().Line())
	if body := ref.Body(); len(body) == 8 { // already a hash
		c.buf = append(c.buf, body...)
	} else {
		c.buf = binary.BigEndian.AppendUint64(c.buf, maphash.Bytes(c.seed, body))
	}
	c.buf = append(c.buf, ref.Record()...)
	return c.sorter.Add(ref.Key(), c.buf)
}

// placeIn returns the place of a record of a split. record and line count from 0 within the split.
func (c *checker) placeIn(s *table.Split, record, line uint32) Place {
	at := Place{File: s.Source, Record: s.FirstRecord + int64(record) + 1}
	if c.plan.Sources[s.Ordinal].About().Lines {
		at.Line = s.FirstLine + int64(line) + 1
	}
	return at
}

// place returns the place of a record, given its data in the sorter.
func (c *checker) place(kept []byte) Place {
	at := binary.BigEndian.Uint64(kept)
	return c.placeIn(c.splits[at>>32], uint32(at), binary.BigEndian.Uint32(kept[keptLine:]))
}

// compare iterates over the keys in order. For each key, it compares the values from which its records' keys were made.
func (c *checker) compare(ctx context.Context) error {
	if rows := c.sorter.Len(); c.sorter.Spilled() == 0 && c.distinct.all(rows) {
		c.result.Keys = rows
		c.cfg.Progress.Compared.Add(rows)
		return nil
	}
	sorted, err := c.sorter.Sort()
	if err != nil {
		return err
	}
	r := c.result
	r.SpilledRows = sorted.Spilled()
	var key, first []byte // key, and values of the key's first record
	collides := false
	var equal []Repeat
	it := sorted.Range(nil, nil)
	known := true // this item's key is known to be new
	for n := 0; it.Next(); n++ {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.cfg.Progress.Compared.Add(1)
		alone := it.Alone()
		if known && alone {
			r.Keys++
			continue
		}
		known = alone
		switch value := it.Value(); {
		case r.Keys == 0 || !bytes.Equal(it.Key(), key):
			key, first, collides = append(key[:0], it.Key()...), append(first[:0], value...), false
			r.Keys++
		case bytes.Equal(value[keptFields:], first[keptFields:]):
			r.Repeated++
			list, same := &r.Repeats, bytes.Equal(value[keptHash:keptFields], first[keptHash:keptFields])
			if same {
				r.Equal++
				list = &equal
			} else {
				r.Different++
			}
			if len(*list) < c.cfg.Examples {
				example, err := c.example(key, first, value)
				if err != nil {
					return err
				}
				*list = append(*list, Repeat{example, same})
			}
		default:
			r.Colliding++
			if collides {
				continue
			}
			collides = true
			r.Collisions++
			if len(r.Examples) < c.cfg.Examples {
				example, err := c.example(key, first, value)
				if err != nil {
					return err
				}
				r.Examples = append(r.Examples, example)
			}
		}
	}
	r.Repeats = append(r.Repeats, equal[:min(len(equal), c.cfg.Examples-len(r.Repeats))]...)
	return it.Err()
}

func (c *checker) example(key, first, other []byte) (e Collision, err error) {
	if c.plan.Tables != nil {
		var name []byte
		name, key = table.CutTable(key)
		e.Table = string(name)
	}
	e.First, e.Other = c.place(first), c.place(other)
	e.Key, err = keyOf(c.plan.Schema.Key, key)
	return e, err
}
