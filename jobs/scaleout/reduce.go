package scaleout

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/jobs/scaleout/runfile"
)

// reduced returns the reduced run of a shard, which it makes if necessary. The run has each key once, because a paused
// process may send a row after its successor has sent a later row of the key. With the run, both send the same bytes.
func (j *Job) reduced(ctx context.Context, shard int, lease *jobdir.Lease) (*reducedResult, error) {
	folder := jobdir.Below(j.store, shardFolder(shard))
	r := new(reducedResult)
	if there, err := j.readResult(ctx, folder, reducedName, r); there || err != nil {
		return r, err
	}
	if err := lease.Check(); err != nil {
		return nil, err
	}
	*r = reducedResult{done: j.newDone(fmt.Sprintf("%09d", lease.Epoch)), Shard: shard}
	sorter, err := j.sorter()
	if err != nil {
		return nil, err
	}
	defer sorter.Close() // an error leaves only temporary files
	if err := j.sortRuns(ctx, shard, r, sorter); err != nil {
		return nil, err
	}
	sorted, err := sorter.Sort()
	if err != nil {
		return nil, err
	}
	if err := j.keepLast(ctx, r, sorted); err != nil {
		return nil, err
	}
	r.Ended = time.Now().UTC() // its CPU time is counted for the shard
	return r, j.commit(ctx, folder, reducedName, r)
}

// rowsOf returns the rows that a shard sends: its reduced run, or the runs themselves if no key repeats.
func (j *Job) rowsOf(ctx context.Context, shard int, lease *jobdir.Lease) (*reducedResult, error) {
	if !j.Plan.Unique {
		return j.reduced(ctx, shard, lease)
	}
	pieces, err := j.pieces(ctx, shard)
	if err != nil {
		return nil, err
	}
	r := &reducedResult{Shard: shard}
	split, first := -1, 0 // first is the index of the split's first object
	for _, p := range pieces {
		if p.split != split {
			of, err := j.split(ctx, p.split) // cached
			if err != nil {
				return nil, err
			}
			split, first = p.split, len(r.Objects)
			r.Objects = append(r.Objects, of.Objects...)
		}
		p.at.Object += first
		r.Frames = append(r.Frames, frame{At: p.at})
		r.From += p.at.Rows
	}
	r.Rows = r.From
	return r, nil
}

// sortedHead is the approximate overhead of a row in a sorter, without key and body; it exceeds that in a run.
const sortedHead = 12

// Limits for reading runs: object stores are slow, and a shard has rows in thousands of splits.
const (
	readsAtATime = 16
	bytesAtATime = 16 << 20 // unless a single extent is larger
)

// piece is a shard's rows in the run of a split.
type piece struct {
	split int
	at    runfile.Extent
}

// pieces returns the pieces of a shard in the runs, in the order of the splits.
func (j *Job) pieces(ctx context.Context, shard int) (all []piece, err error) {
	of := make([][]runfile.Extent, len(j.Plan.Splits))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readsAtATime)
	for i := range of {
		group.Go(func() error {
			r, err := j.split(reading, i)
			if err == nil && r == nil {
				err = fmt.Errorf("shard %d cannot be written: split %d has not been read yet", shard, i)
			}
			if err == nil && r.Rows > 0 {
				of[i], err = runfile.ReadIndex(reading, j.store, r.Index, len(r.Objects), shard, len(j.Plan.Shards))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, extents := range of {
		for _, e := range extents {
			all = append(all, piece{i, e})
		}
	}
	return all, nil
}

// preload reads results of splits concurrently into the cache, for code that later requests them one by one.
func (j *Job) preload(ctx context.Context, there func(i int) bool) error {
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readsAtATime)
	for i := range j.Plan.Splits {
		if there(i) {
			group.Go(func() error {
				_, err := j.split(reading, i)
				return err
			})
		}
	}
	return group.Wait()
}

// fetch reads the first pieces, at least one, up to the limits.
func (j *Job) fetch(ctx context.Context, pieces []piece) (frames [][]byte, err error) {
	var bytes int64
	group, reading := errgroup.WithContext(ctx)
	frames = make([][]byte, 0, readsAtATime) // the elements must not move
	for i := 0; i < min(len(pieces), readsAtATime) && (i == 0 || bytes+pieces[i].at.Length <= bytesAtATime); i++ {
		bytes += pieces[i].at.Length
		frames = append(frames, nil)
		into := &frames[i]
		group.Go(func() error {
			r, err := j.split(reading, pieces[i].split)
			if err == nil {
				*into, err = runfile.Read(reading, j.store, r.Objects, &pieces[i].at)
			}
			return err
		})
	}
	return frames, group.Wait()
}

// sortRuns sorts the rows of a shard by key and, within a key, by position in the inputs.
func (j *Job) sortRuns(ctx context.Context, shard int, r *reducedResult, sorter *extsort.Sorter) error {
	var unpacker runfile.Unpacker
	pieces, err := j.pieces(ctx, shard)
	if err != nil {
		return err
	}
	var rows, bytes int64 // rows and their size
	for _, p := range pieces {
		of, err := j.split(ctx, p.split) // cached
		if err != nil {
			return err
		}
		rows += p.at.Rows
		bytes += p.at.Rows * (of.Bytes/max(of.Rows, 1) + sortedHead)
	}
	sorter.Expect(rows, bytes)
	var value []byte
	for len(pieces) > 0 {
		frames, err := j.fetch(ctx, pieces)
		if err != nil {
			return err
		}
		for i, frame := range frames {
			rows, err := unpacker.Rows(frame, func(row *runfile.Row) error {
				value = binary.BigEndian.AppendUint64(value[:0], uint64(r.From))
				value = binary.AppendUvarint(value, uint64(row.Size))
				value = binary.AppendUvarint(value, uint64(row.Source))
				value = binary.AppendUvarint(value, uint64(row.Record))
				value = append(value, row.Body...)
				r.From++
				return sorter.Add(row.Key, value)
			})
			if err == nil && rows != pieces[i].at.Rows {
				err = fmt.Errorf("found %d rows, want %d", rows, pieces[i].at.Rows)
			}
			if err != nil {
				return fmt.Errorf("read rows of split %d for shard %d: %w", pieces[i].split, shard, err)
			}
		}
		pieces = pieces[len(frames):]
	}
	return nil
}

// keepLast writes the last row of each key.
func (j *Job) keepLast(ctx context.Context, r *reducedResult, sorted *extsort.Sorted) error {
	w := runfile.NewSorted(ctx, j.store, shardFolder(r.Shard)+"/reduced."+r.Attempt)
	var row runfile.Row
	var body []byte
	held := false
	for it := sorted.Range(nil, nil); ; {
		more := it.Next()
		if held && (!more || !bytes.Equal(row.Key, it.Key())) {
			if err := w.Add(&row); err != nil {
				return err
			}
			held = false
		}
		if !more {
			if it.Err() != nil {
				return it.Err()
			}
			break
		}
		if held {
			r.Superseded++
		}
		held = true
		value := it.Value()[8:]
		var n [3]uint64
		for i := range n {
			v, size := binary.Uvarint(value)
			n[i], value = v, value[max(size, 0):]
		}
		body = append(body[:0], value...)
		row = runfile.Row{Key: append(row.Key[:0], it.Key()...), Body: body, Size: int(n[0]), Source: int(n[1]),
			Record: int64(n[2])}
	}
	if err := w.Close(); err != nil {
		return err
	}
	r.Rows, r.Bytes, r.Objects = w.Rows, w.Raw, w.Objects
	for _, f := range w.Frames {
		r.Frames = append(r.Frames, frame{f.Extent, f.First, f.Last})
	}
	if r.From != r.Rows+r.Superseded {
		return fmt.Errorf("the ledger of shard %d does not balance: %d rows in runs, %d kept and %d superseded", r.Shard,
			r.From, r.Rows, r.Superseded)
	}
	return nil
}
