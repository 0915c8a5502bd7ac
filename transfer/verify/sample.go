package verify

import (
	"bytes"
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
)

// compareSample reads the rows of the sampled keys, as many per request as possible.
func (v *verifier) compareSample(ctx context.Context) error {
	var tallies []*tally
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(v.cfg.Workers)
	it := v.sorted.Range(nil, nil)
	expected := v.newWants(it)
	w := expected.next()
	for w != nil && groupCtx.Err() == nil {
		var batch []want
		var of *target
		for len(batch) < scan.MaxGetRows && w != nil {
			if of != nil && !bytes.HasPrefix(w.key, of.prefix) {
				break // a request reads one table
			}
			of = v.target(w.key)
			batch = append(batch, *w)
			expected.now = want{} // the batch keeps the former value
			w = expected.next()
		}
		t := v.newTally(of)
		tallies = append(tallies, t)
		group.Go(func() error { return v.compareKeys(groupCtx, t, batch) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := cmp.Or(it.Err(), context.Cause(ctx)); err != nil {
		return err
	}
	v.add(tallies)
	return nil
}

func (v *verifier) compareKeys(ctx context.Context, t *tally, batch []want) error {
	keys := make([][]table.Value, len(batch))
	var err error
	for i := range batch {
		if keys[i], err = decodeKey(t.table.Key, batch[i].key[len(t.table.prefix):]); err != nil {
			return err
		}
	}
	rows := make([]*scan.Row, len(batch))
	if !t.table.absent {
		if rows, err = scan.Get(ctx, v.cfg.Client, t.table.Name, t.table.Key, keys, v.options(t.table)); err != nil {
			return err
		}
	}
	for i, row := range rows {
		t.expected(&batch[i], v.unmarked(row))
		v.cfg.Progress.Compared.Add(1)
	}
	return t.err
}
