package scaleout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

func (f *finisher) takeRejects(ctx context.Context, d *done) error {
	return f.job.eachReject(ctx, d, func(r *keptReject, line []byte) error {
		if r.Source < 0 || r.Source >= len(f.job.Plan.Inputs) || r.Record < 0 {
			return progress.Unfitf("%s is damaged: a rejected record of attempt %s belongs to no input", f.job.store, d.Attempt)
		}
		key := binary.BigEndian.AppendUint32(nil, uint32(r.Source))
		return f.rejects.Add(binary.BigEndian.AppendUint64(key, uint64(r.Record)), line)
	})
}

// parts returns the parts of all splits, which are in input order.
func (p *Plan) parts() (all []Part) {
	for _, s := range p.Splits {
		all = append(all, s.Parts...)
	}
	return all
}

// checkRejects checks that no record was rejected twice, and finds the parts of the inputs to reread.
func (f *finisher) checkRejects() error {
	all, err := newSortedRejects(f.sorted)
	if err != nil {
		return err
	}
	f.again = map[Part]int64{}
	parts := f.job.Plan.parts()
	source, record, n := -1, int64(-1), int64(0)
	for ; all.next != nil; n++ {
		r := all.next
		if r.Source == source && r.Record == record {
			return fmt.Errorf("the ledger does not balance: record %d of %s was rejected twice", r.Record+1,
				f.job.Plan.Inputs[r.Source])
		}
		source, record = r.Source, r.Record
		for len(parts) > 0 && !all.before(parts[0].Source, parts[0].end()) {
			parts = parts[1:]
		}
		if len(parts) == 0 || all.before(parts[0].Source, parts[0].Record) {
			return progress.Unfitf("%s is damaged: record %d of %s was rejected, but no split has it", f.job.store, r.Record+1,
				f.job.Plan.Inputs[r.Source])
		}
		if !r.Read {
			f.again[parts[0]] = r.Record
		}
		if err := all.advance(); err != nil {
			return err
		}
	}
	if n != f.summary.Rejected {
		return fmt.Errorf("the ledger does not balance: %d records were rejected, but %d are kept", f.summary.Rejected, n)
	}
	return nil
}

// mergeRejects writes the rejected records of all splits and shards in input order, like a load by one process.
func (f *finisher) mergeRejects(ctx context.Context) error {
	if f.summary.Rejected == 0 {
		return nil
	}
	prepared, err := f.job.prepare(ctx)
	if err != nil {
		return err
	}
	scratch, err := f.job.folder()
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "rejects")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	folder, err := rundir.Create(dir, prepared.Plan.Headers)
	if err != nil {
		return err
	}
	m := &merger{job: f.job, prepared: prepared, to: folder}
	if m.all, err = newSortedRejects(f.sorted); err != nil {
		return err
	}
	for _, part := range f.job.Plan.parts() {
		if last, again := f.again[part]; again {
			err = m.readAgain(ctx, part, last)
		}
		if err == nil {
			err = m.write(part.Source, part.end())
		}
		if err != nil {
			return err
		}
	}
	if err := folder.Close(); err != nil {
		return err
	}
	if f.summary.Reasons, err = rundir.CountReasons(dir); err != nil {
		return err
	}
	for _, path := range folder.RejectsFiles() {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := f.job.store.PutFile(ctx, filepath.ToSlash(name), path); err != nil {
			return fmt.Errorf("store %s in %s: %w", name, f.job.store, err)
		}
		f.summary.RejectsFiles = append(f.summary.RejectsFiles, filepath.ToSlash(name))
	}
	return nil
}

type merger struct {
	job      *Job
	prepared *pipeline.Prepared
	all      *sortedRejects
	to       *rundir.Folder
}

// next returns the next rejected record if it precedes a record of a source, or nil.
func (m *merger) next(source int, record int64) (*keptReject, error) {
	if !m.all.before(source, record) {
		return nil, nil
	}
	r := m.all.next
	return r, m.all.advance()
}

// write writes all rejected records that precede a record of a source.
func (m *merger) write(source int, record int64) error {
	for {
		r, err := m.next(source, record)
		if r == nil || err != nil {
			return err
		}
		if err := m.writeOne(r); err != nil {
			return err
		}
	}
}

func (m *merger) writeOne(r *keptReject) error {
	if !r.Read {
		return fmt.Errorf("rejected record %d of %s is gone: has the input changed?", r.Record+1, m.job.Plan.Inputs[r.Source])
	}
	if r.Header < 0 || r.Header >= len(m.prepared.Plan.Headers) {
		return progress.Unfitf("a list of rejected records is damaged: there is no header %d", r.Header)
	}
	return m.to.Reject(r.Header, r.Reject)
}

// readAgain writes a part's rejects up to record last. It rereads the texts of those that were rejected when written.
func (m *merger) readAgain(ctx context.Context, part Part, last int64) error {
	p, err := m.prepared.Plan.Part(part.Source, part.from())
	if err != nil {
		return err
	}
	p.Request.Keep = plan.KeepRecord
	err = eachSplit(ctx, p, m.job.shards, last-part.Record+1, func(parsed *intake.Parsed) error {
		var all []*keptReject // at most as many as were parsed together
		wanted := map[int64]*keptReject{}
		for {
			r, err := m.next(part.Source, parsed.Split.FirstRecord+int64(parsed.Records))
			if err != nil {
				return err
			}
			if r == nil {
				break
			}
			if all = append(all, r); !r.Read {
				wanted[r.Record] = r
			}
		}
		m.find(parsed, wanted)
		for _, r := range all {
			if err := m.writeOne(r); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, p.Sources[0].Suspend())
}

// find sets the texts of the wanted records.
func (m *merger) find(parsed *intake.Parsed, wanted map[int64]*keptReject) {
	for _, b := range parsed.Blocks {
		for i := range b.Block.Rows {
			ref := table.Ref{Block: b.Block, Index: int32(i)}
			r := wanted[ref.Number()]
			if r == nil {
				continue
			}
			r.Reject, r.Header, r.Read = ref.Reject(r.Reject.Reason), parsed.Split.Header, true
			if len(r.Reject.Raw) == 0 {
				r.Reject.Raw = m.prepared.RejectText(ref.Body())
			}
		}
	}
}
