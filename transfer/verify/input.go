package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// splits holds all splits in source order. A position is the index of a split and the number of a record in it.
type splits []*table.Split

func position(split int, row *table.Row) uint64 { return uint64(split)<<32 | uint64(row.Number()) }

func (s splits) place(position uint64) *Place {
	of := s[position>>32]
	return &Place{File: of.Source, Record: of.FirstRecord + int64(position&math.MaxUint32) + 1}
}

// eachSplit reads the inputs, up to the request's number of records, and calls each for every split in source order.
func eachSplit(ctx context.Context, p *plan.Plan, sums intake.Sums, each func(*intake.Parsed) error) error {
	flow := intake.New(p, partitioner.NewMap(nil))
	flow.Lends, flow.Sums = true, sums // each must copy what it keeps
	_, err := flow.Each(ctx, cmp.Or(p.Request.Records, -1), each)
	return err
}

// readInput reduces and sorts the rows of the inputs.
func (v *verifier) readInput(ctx context.Context) (err error) {
	sorter, err := v.sorter()
	if err != nil {
		return err
	}
	r := newReducer(v.hasher, v.plan)
	sums := intake.Sums{By: v.hasher, Keeps: v.keeps}
	if v.keeps {
		v.rows = &aside{store: sorter.Store(), memory: int(min(v.cfg.Memory/256, 1<<20))}
		if v.plan.Wide { // do not replace the bodies of self-describing records with sums
			sums = intake.Sums{}
		}
	}
	err = eachSplit(ctx, v.plan, sums, func(p *intake.Parsed) error { return v.take(p, r, sorter) })
	if err == nil {
		v.sorted, err = sorter.Sort()
	}
	if err != nil {
		return errors.Join(err, sorter.Close())
	}
	return nil
}

func (v *verifier) take(p *intake.Parsed, r *reducer, sorter *extsort.Sorter) error {
	v.splits = append(v.splits, p.Split)
	v.result.Read += int64(p.Records)
	v.result.Rejected += int64(len(p.Rejects))
	v.result.Archived += int64(len(p.Archived))
	v.cfg.Progress.Read.Add(int64(p.Records))
	if !v.told {
		v.told = expect(sorter, v.plan, p, v.moreBytes(p)) > 0
	}
	if err := v.takeRejects(p, sorter); err != nil {
		return err
	}
	for _, b := range p.Blocks {
		if v.rows != nil {
			if err := v.rows.add(b.Block); err != nil {
				return err
			}
		}
		for i := range b.Block.Rows {
			ref := table.Ref{Block: b.Block, Index: int32(i)}
			key, record := ref.Key(), p.Split.FirstRecord+int64(ref.Row().Number())+1
			if v.cfg.Rejected.Has(p.Split.Source, record) {
				v.result.Rejected++
				continue
			}
			if v.returned != nil {
				var err error
				if key, err = v.returned.of(ref, record, key); err != nil {
					return err
				}
				if key == nil {
					v.result.WithoutKey++
					continue
				}
			}
			switch {
			case !v.sampled(key):
				v.result.NotSampled++
				continue
			case v.outside(key):
				v.result.OutOfRange++
				continue
			}
			if v.plan.Tables != nil {
				v.name(key)
			}
			reduced, err := r.reduce(position(len(v.splits)-1, ref.Row()), ref.Body())
			if err != nil {
				return err
			}
			v.stamped = v.stamped || r.stamped
			if v.rows != nil {
				reduced = v.rows.appendPlace(reduced, ref)
			}
			if err := sorter.Add(key, reduced); err != nil {
				return err
			}
		}
	}
	return nil
}

// name records the table that an ordering key begins with.
func (v *verifier) name(key []byte) {
	name, _ := table.CutTable(key)
	if !v.named[string(name)] {
		v.named[string(name)] = true
	}
}

func (v *verifier) sampled(key []byte) bool {
	if v.cfg.Sample <= 0 {
		return true
	}
	return float64(v.hasher.Key(key)) < v.cfg.Sample*(1<<64)
}

// takeRejects counts the rejects that the load may have accepted, passes rejects to Changes, and sorts their keys.
func (v *verifier) takeRejects(p *intake.Parsed, sorter *extsort.Sorter) error {
	v.recordsOf[p.Split.Ordinal] += int64(p.Records)
	for i := range p.Rejects {
		r := p.Split.Reject(p.Rejects[i].Span, p.Rejects[i].Reason, nil)
		if v.numberless || v.cfg.Rejected.Has(p.Split.Source, r.Location.Record) {
			continue // the load also rejected it
		}
		if v.result.NotCompared++; v.result.FirstNotCompared == nil {
			first := rundir.ReasonOf(&r)
			v.result.FirstNotCompared = &first
		}
	}
	if !v.keeps {
		return nil
	}
	for i := range p.Rejects {
		r := &p.Rejects[i]
		if v.cfg.Changes != nil {
			if err := v.cfg.Changes.Reject(v.plan.Headers, p.Split.Header, p.Split.Reject(r.Span, r.Reason, r.Raw)); err != nil {
				return err
			}
		}
		if r.Key == nil {
			continue
		}
		if err := sorter.Add(r.Key, append(make([]byte, headBytes-1), kindReject)); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) outside(key []byte) bool {
	return v.from != nil && bytes.Compare(key, v.from) < 0 || v.to != nil && bytes.Compare(key, v.to) >= 0
}

// moreBytes returns the number of bytes to sort per row of a split, in addition to the bytes in its block.
func (v *verifier) moreBytes(p *intake.Parsed) int {
	if v.rows == nil {
		return headBytes
	}
	rows, bodies := 0, 0
	for _, b := range p.Blocks {
		rows += len(b.Block.Rows)
		for i := range b.Block.Rows {
			bodies += b.Block.Rows[i].Bytes()
		}
	}
	return headBytes + intake.SumBytes + placeBytes - bodies/max(rows, 1)
}

// expect tells a sorter the size of the inputs, estimated from the first split with rows: the bytes in its blocks plus
// more for each row. It returns the estimated number of rows, or 0 if the split does not allow an estimate.
func expect(sorter *extsort.Sorter, of *plan.Plan, p *intake.Parsed, more int) int64 {
	rows, bytes := 0, 0
	for _, b := range p.Blocks {
		rows += len(b.Block.Rows)
		bytes += len(b.Block.Data) + len(b.Block.Rows)*more
	}
	if rows == 0 || p.Split.Input == 0 {
		return 0
	}
	times := float64(max(of.Bytes, 0)) / float64(p.Split.Input)
	if limit := of.Request.Records; limit > 0 {
		times = min(times, float64(limit)/float64(rows))
	}
	all := int64(times * float64(rows))
	sorter.Expect(all, int64(times*float64(bytes)))
	return max(all, 1)
}
