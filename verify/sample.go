package verify

import (
	"context"

	"golang.org/x/sync/errgroup"

	"tsimport/scan"
	"tsimport/table"
)

// compareSample reads the rows of the sampled keys, as many in a request as it can name.
func (v *verifier) compareSample(ctx context.Context) error {
	var tallies []*tally
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(v.cfg.Workers)
	it := v.sorted.Range(nil, nil)
	expected := newWants(it, v.plan.Request.Mode, v.anyOrder)
	for more := true; more && ctx.Err() == nil; {
		var batch []want
		for len(batch) < scan.MaxGetRows && more {
			var w *want
			if w, more = expected.next(); more {
				batch = append(batch, *w)
				expected.now = want{} // the batch keeps it
			}
		}
		if len(batch) == 0 {
			break
		}
		t := v.newTally()
		tallies = append(tallies, t)
		group.Go(func() error { return v.compareKeys(ctx, t, batch) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if it.Err() != nil {
		return it.Err()
	}
	v.add(tallies)
	return nil
}

func (v *verifier) compareKeys(ctx context.Context, t *tally, batch []want) error {
	keys := make([][]table.Value, len(batch))
	var err error
	for i := range batch {
		if keys[i], err = decodeKey(v.table.Key, batch[i].key); err != nil {
			return err
		}
	}
	rows, err := scan.Get(ctx, v.cfg.Client, v.table.Name, v.table.Key, keys, v.options())
	if err != nil {
		return err
	}
	for i, row := range rows {
		t.expected(&batch[i], row)
		v.cfg.Progress.Compared.Add(1)
	}
	return t.err
}
