package store

import (
	"bytes"
	"context"
	"slices"

	"example.com/tsimport/engine/wire"
)

// checkAtomic gives all rows of a table the same error if any has one, or if their partition keys differ.
func (w *writer) checkAtomic(tables []TableWrite) {
	for i := range tables {
		spread(tables[i].Outcomes)
	}
	var first *writeRow // first row of the table
	for i := range w.rows {
		r := &w.rows[i]
		if first == nil || first.meta != r.meta {
			first = r
		}
		if r.outcome.Err == nil && !bytes.Equal(partitionPart(first.key), partitionPart(r.key)) {
			r.outcome.Err = wire.Failf(wire.CodeDataOutOfRange,
				"Data out of scope of atomic. Atomic PartKey:%s. Data PartKey:%s",
				first.change.Row.Key[0].Text(), r.change.Row.Key[0].Text())
		}
	}
	for i := range tables {
		spread(tables[i].Outcomes)
	}
	w.leaveOut()
}

// leaveOut drops the rows with an error.
func (w *writer) leaveOut() {
	kept := w.rows[:0]
	w.placeholders = 0
	for _, r := range w.rows {
		if r.outcome.Err != nil {
			continue
		}
		if r.number > 0 {
			w.placeholders++
		}
		kept = append(kept, r)
	}
	clear(w.rows[len(kept):])
	w.rows = kept
}

// spread gives all rows of a table its first error, if there is one.
func spread(outcomes []wire.Outcome) {
	for i := range outcomes {
		if err := outcomes[i].Err; err != nil {
			for j := range outcomes {
				outcomes[j] = wire.Outcome{Err: err}
			}
			return
		}
	}
}

// applyAtomic puts the rows of each table into a separate batch, and merges the batches of tables without a failed row.
func (w *writer) applyAtomic(ctx context.Context) *wire.Error {
	for from := 0; from < len(w.rows); {
		to := from + 1
		for to < len(w.rows) && w.rows[to].meta == w.rows[from].meta {
			to++
		}
		if err := w.applyTable(ctx, w.rows[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (w *writer) applyTable(ctx context.Context, rows []writeRow) *wire.Error {
	if !slices.ContainsFunc(rows, func(r writeRow) bool { return r.readsFirst() }) {
		return w.applyRows(ctx, rows) // these rows cannot fail any more
	}
	all := w.batch
	w.batch = w.store.db.NewIndexedBatch()
	defer func() {
		w.batch.Close()
		w.batch = all
	}()
	if err := w.applyRows(ctx, rows); err != nil {
		return err
	}
	for i := range rows {
		if failed := *rows[i].outcome; failed.Err != nil {
			for j := range rows {
				*rows[j].outcome = failed
			}
			return nil
		}
	}
	if err := all.Apply(w.batch, nil); err != nil {
		return wire.Failf(wire.CodeServerUnavailable, "Nothing was applied: %v.", err)
	}
	return nil
}
