package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// Settled reports on rows that differed at first. Each was reread on both sides until they agreed or time ran out.
type Settled struct {
	Differed int64   `json:"differed"` // rows that differed at first; surplus rows only if they count as a failure
	Settled  int64   `json:"settled"`  // rows that later were equal
	Remain   int64   `json:"remain"`   // rows that still differ
	Rounds   int     `json:"rounds"`   // number of rereads
	Seconds  float64 `json:"seconds"`
}

// maxUnsettled limits the number of rows to reread. If more rows differ, rows in flight are not the reason.
const maxUnsettled = 100_000

// The initial and the maximum interval between rereads.
const (
	firstWait   = time.Second
	longestWait = 5 * time.Second
)

// unsettled holds the keys that differ, and knows how to reread their rows. A nil unsettled keeps no keys.
type unsettled struct {
	of     source.Rereads
	places []int // position in the table's key of each column of the source's key

	mu   sync.Mutex
	keys [][]byte
	all  int64 // number of differing keys, including keys that were not kept
	most int64
}

func (u *unsettled) add(key []byte) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all++; u.all <= u.most {
		u.keys = append(u.keys, bytes.Clone(key))
	}
}

// newUnsettled refuses a source whose rows cannot be looked up by their table keys. Without SettleFor, it returns nil.
func (v *verifier) newUnsettled(ctx context.Context) (*unsettled, error) {
	r := v.plan.Request
	inputs := strings.Join(r.ShownInputs(), ", ")
	refuse := func(format string, a ...any) (*unsettled, error) {
		return nil, plan.Usagef("--settle-for: %s; leave it out", fmt.Sprintf(format, a...))
	}
	of, ok := r.Read.Sources.(source.Rereads)
	switch {
	case v.cfg.SettleFor <= 0:
		return nil, nil
	case !ok:
		return refuse("single rows of %s cannot be reread; only tables of a database or of Tablestore allow it", inputs)
	case v.cfg.Sample > 0 || v.cfg.Stored != nil || v.cfg.Returned != "" || v.plan.Tables != nil:
		return refuse("it cannot be combined with --sample, --archive, --returned-keys or a computed table name")
	}
	u := &unsettled{of: of, most: cmp.Or(v.cfg.mostUnsettled, maxUnsettled)}
	for _, column := range v.plan.Sources[0].About().Unique {
		i := slices.IndexFunc(v.plan.Schema.Columns[:len(v.plan.Schema.Key)],
			func(c table.Column) bool { return c.Source == column.Name })
		if i < 0 || keyTypes[column.Kind] != v.plan.Schema.Key[i].Type || v.plan.Schema.Columns[i].Time != nil ||
			v.plan.Makers != nil && v.plan.Makers[i].Program != nil {
			return refuse("rows are looked up by key, but key column %s of %s is not, unchanged, in the key of table %s",
				column.Name, inputs, r.Target.Table)
		}
		u.places = append(u.places, i)
	}
	if len(u.places) == 0 {
		return refuse("%s does not say which columns identify a row", inputs)
	}
	none, err := of.Reread(ctx, nil)
	if err != nil {
		return refuse("%v", err)
	}
	return u, none.Close()
}

// differs returns the number of rows that must still become equal.
func (v *verifier) differs(c Counts) int64 {
	if v.cfg.ExtraFails {
		return c.Missing + c.Different + c.Extra
	}
	return c.Missing + c.Different
}

// settle rereads differing rows until they agree or the time runs out, and corrects the result.
func (v *verifier) settle(ctx context.Context) error {
	u := v.unsettled
	if u == nil {
		return nil
	}
	start, r := time.Now(), v.result
	if u.all > u.most {
		r.Notes = append(r.Notes, fmt.Sprintf("%d rows differ, more than the %d that --settle-for rereads: the result is "+
			"that of the first reading", u.all, u.most))
		return nil
	}
	s := &Settled{Differed: u.all}
	r.Settled = s
	// base counts the equal rows. Each round adds the rows that settled; the last one also adds the rows that did not.
	first, base, left := r.Counts, r.Counts, Counts{}
	base.RowsExpected -= first.Missing + first.Different
	base.RowsInTable -= first.Different
	base.Missing, base.Different = 0, 0
	if v.cfg.ExtraFails {
		base.RowsInTable -= first.Extra
		base.Extra = 0
	}
	slices.SortFunc(u.keys, bytes.Compare)
	for wait := firstWait; len(u.keys) > 0 && time.Since(start) < v.cfg.SettleFor; wait = min(2*wait, longestWait) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(wait, v.cfg.SettleFor-time.Since(start))):
		}
		again, err := v.lookAgain(ctx)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		s.Rounds++
		base.add(again.settled)
		left, u.keys = again.left, again.keys
		v.enter(again)
		counts := base
		counts.add(left)
		r.Read += counts.RowsExpected - r.RowsExpected
		r.Counts = counts
	}
	s.Remain, s.Seconds = int64(len(u.keys)), time.Since(start).Seconds()
	s.Settled = max(s.Differed-s.Remain, 0)
	return nil
}

// enter adds a round's counts to the result and replaces the examples with rows that still differ after the round.
func (v *verifier) enter(a *again) {
	r, t := v.result, a.tally
	r.Rejected, r.Read = r.Rejected+a.of.result.Rejected, r.Read+a.of.result.Rejected
	r.NotCompared, r.OfRejects = r.NotCompared+a.of.result.NotCompared, r.OfRejects+t.ofRejects
	r.FirstNotCompared = cmp.Or(r.FirstNotCompared, a.of.result.FirstNotCompared)
	v.stamped = v.stamped || a.of.stamped
	v.units.Add(a.of.units.Load())
	r.Examples = slices.DeleteFunc(r.Examples, func(e Example) bool { return e.Kind != Extra || v.cfg.ExtraFails })
	for _, kind := range []string{Missing, Different, Extra} {
		for _, e := range t.examples[kind] {
			if e.Input = nil; kind != Extra || v.cfg.ExtraFails { // the number of the record is from the reread
				r.Examples = append(r.Examples, e)
			}
		}
	}
}

type again struct {
	of            *verifier // compares the reread rows
	tally         *tally
	settled, left Counts
	keys          [][]byte // keys that still differ
}

// lookAgain rereads the differing rows, first from the source, then from the table.
func (v *verifier) lookAgain(ctx context.Context) (a *again, err error) {
	request := *v.plan.Request
	request.RejectedKeys = true
	p := *v.plan
	p.Request = &request
	a = &again{of: &verifier{
		cfg: v.cfg, admin: v.admin, tables: v.tables, anyOrder: v.anyOrder, plan: &p, hasher: v.hasher, result: new(Result),
		from: v.from, to: v.to, recordsOf: make([]int64, len(p.Sources)), stamped: v.stamped, keeps: true,
		numberless: v.numberless,
	}}
	keys := make([][]table.Value, len(v.unsettled.keys))
	for n, key := range v.unsettled.keys {
		values, err := decodeKey(v.tables[0].Key, key)
		if err != nil {
			return nil, err
		}
		for _, i := range v.unsettled.places {
			keys[n] = append(keys[n], values[i])
		}
	}
	one := *p.Sources[0]
	if one.Source, err = v.unsettled.of.Reread(ctx, keys); err != nil {
		return nil, &InputError{err}
	}
	defer one.Source.Close()
	p.Sources = []*plan.Source{&one}
	if err := a.of.readInput(ctx); err != nil {
		return nil, &InputError{err}
	}
	defer a.of.sorted.Close()
	if a.tally = a.of.newTally(v.tables[0]); v.cfg.Changes == nil {
		return a, a.compare(ctx, v.unsettled.keys)
	}
	if err := v.cfg.Changes.Again(); err != nil {
		return nil, err
	}
	if a.tally.told, err = v.cfg.Changes.Range(0); err != nil {
		return nil, err
	}
	return a, cmp.Or(a.compare(ctx, v.unsettled.keys), a.tally.told.Close())
}

// compare compares the source's and the table's rows of the given keys.
func (a *again) compare(ctx context.Context, keys [][]byte) error {
	v, t := a.of, a.tally
	it := v.sorted.Range(nil, nil)
	expected := v.newWants(it)
	next := expected.next()
	for batch := range slices.Chunk(keys, scan.MaxGetRows) {
		wants, values := make([]*want, len(batch)), make([][]table.Value, len(batch)) // nil: not in the source
		var err error
		for i, key := range batch {
			if next != nil && bytes.Equal(next.key, key) {
				kept := *next
				expected.now = want{} // the batch keeps the former value
				wants[i], next = &kept, expected.next()
			}
			if values[i], err = decodeKey(t.table.Key, key); err != nil {
				return err
			}
		}
		if it.Err() != nil { // unread rows must not count as missing
			return it.Err()
		}
		rows, err := scan.Get(ctx, v.cfg.Client, t.table.Name, t.table.Key, values, v.options(t.table))
		if err != nil {
			return err
		}
		for i, key := range batch {
			if err := a.judge(key, wants[i], rows[i]); err != nil {
				return err
			}
		}
	}
	if next != nil {
		return fmt.Errorf("reread rows: the source returned a key that was not requested: %x", next.key)
	}
	return nil
}

func (a *again) judge(key []byte, w *want, row *scan.Row) error {
	t := a.tally
	before := t.Counts
	t.Counts = Counts{}
	examples := len(t.examples[Different])
	switch {
	case w != nil:
		t.expected(w, t.v.unmarked(row))
	case row != nil:
		t.extra(key)
	}
	found := t.Counts
	if t.Counts.add(before); t.err != nil {
		return t.err
	}
	if t.v.differs(found) == 0 {
		a.settled.add(found)
		return nil
	}
	a.left.add(found)
	a.keys = append(a.keys, key)
	if len(t.examples[Different]) > examples {
		return a.name(&t.examples[Different][examples], w)
	}
	return nil
}

// name sets the columns in which an example's row differs. nameColumns cannot do so, because it does not see the row.
func (a *again) name(e *Example, w *want) error {
	bodies, err := a.tally.bodies(w)
	if err != nil {
		return err
	}
	given, err := a.of.differing(e, bodies[len(bodies)-1])
	for _, body := range bodies {
		if err != nil {
			return err
		}
		_, err = plainbuffer.Walk(body, nil, func(c plainbuffer.View) {
			name := string(c.Name)
			if slices.Contains(e.unnamed, a.of.hasher.Column(name)) && !slices.Contains(e.Columns, name) {
				e.Columns = append(e.Columns, name)
			}
		})
	}
	slices.Sort(e.Columns)
	e.values(given, a.of.plan.Request.Mode == table.Put)
	e.stored, e.cells, e.unnamed = nil, nil, nil
	return err
}
