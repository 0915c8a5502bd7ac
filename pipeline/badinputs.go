package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// Inputs that cannot be loaded are found before the first row: a plan is made with each, then with as many as possible.

// badFinder finds the inputs that must be left out for the load to be planned.
type badFinder struct {
	attempt *attempt
	request *plan.Request
	names   []string // names of all inputs
	inputs  *plan.InputsError
	at      map[string]int    // position in inputs, by name
	bytes   int64             // size of all inputs
	bad     map[string]string // reasons, by name
	columns map[string]string // columns of inputs that can be loaded alone
	held    map[string]bool   // inputs incompatible with the others; a later run would load them by themselves
	works   bool              // this command has loaded inputs into the table before
}

// planWithout plans a load without its bad inputs, after planning with all inputs has failed.
func (a *attempt) planWithout(ctx context.Context, request *plan.Request, failed error) (*plan.Plan, error) {
	inputs := new(plan.InputsError)
	if !a.cfg.Limits.SetAside || a.from.Snapshot != nil || !setsAside(failed) || !errors.As(failed, &inputs) {
		return nil, failed
	}
	f := &badFinder{attempt: a, request: request, inputs: inputs, at: map[string]int{}, bad: map[string]string{},
		columns: map[string]string{}, held: map[string]bool{}, works: a.cfg.Resume.Once() && a.cfg.Resume.Known.Works()}
	for i, item := range inputs.Items {
		f.names, f.at[item.Name], f.bytes = append(f.names, item.Name), i, f.bytes+max(0, item.Size)
	}
	if err := f.alone(ctx); err != nil {
		return nil, err
	}
	if len(f.bad) == len(f.names) && !f.works {
		if len(f.names) > 1 {
			failed = fmt.Errorf("none of the %d inputs can be loaded: %w", len(f.names), failed)
		}
		return nil, failed // the request is at fault
	}
	if err := f.together(ctx); err != nil {
		return nil, err
	}
	for _, name := range f.names {
		if why := f.bad[name]; why != "" {
			a.bad = append(a.bad, keep.BadInput{Name: name, Reason: why, Source: -1, Held: f.held[name]})
		}
	}
	return a.planLess(ctx, request)
}

func (a *attempt) planLess(ctx context.Context, request *plan.Request) (*plan.Plan, error) {
	r := *request
	r.Without = ledger.LeftOut(a.bad)
	return plan.Make(ctx, &r, a.admin)
}

// leaveStillBad leaves out inputs that were bad in an earlier run and still are, so that none of their rows are sent.
func (a *attempt) leaveStillBad(ctx context.Context, request *plan.Request) error {
	if !a.cfg.Limits.SetAside || a.from.Snapshot != nil {
		return nil
	}
	bad := a.planned.StillBad(func(name string) bool { return a.cfg.Resume.Nights(name) > 0 })
	if len(bad) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		a.bad = append(a.bad, keep.BadInput{Name: name, Reason: client.OneLine(bad[name]), Source: -1})
	}
	a.planned.Close()
	var err error
	a.planned, err = a.planLess(ctx, request)
	return err
}

// setsAside reports whether the content of one input, or of several together, may be at fault.
func setsAside(err error) bool {
	usage := new(plan.UsageError)
	return errors.As(err, &usage) && (usage.Damaged || !usage.Input) && !usage.Nothing
}

// fails plans a load of some inputs. It returns the columns of the first, and an error if they cannot be loaded.
func (f *badFinder) fails(ctx context.Context, names ...string) (columns string, err error) {
	r := *f.request
	r.ItemsOf = f.bytes
	for _, name := range names {
		r.Items = append(r.Items, f.inputs.Items[f.at[name]])
	}
	p, err := plan.Make(ctx, &r, f.attempt.admin)
	if err != nil {
		return "", err
	}
	defer p.Close()
	return strings.Join(p.Sources[0].About().Columns, "\x00"), nil
}

// alone finds the inputs that cannot be loaded even alone. Each of them is read twice, because the readings must agree.
func (f *badFinder) alone(ctx context.Context) error {
	for _, name := range f.names {
		columns, err := f.fails(ctx, name)
		if err == nil {
			f.columns[name] = columns
			continue
		}
		if !setsAside(err) {
			return err
		}
		if _, again := f.fails(ctx, name); again == nil || again.Error() != err.Error() {
			return fmt.Errorf("two readings of %s differ: %w", name, cmp.Or(again, errOnce))
		}
		f.bad[name] = reasonOf(name, err)
	}
	return nil
}

var errOnce = errors.New("only the first one failed; try again once the input no longer changes")

// reasonOf returns why an input is bad, without the input's name.
func reasonOf(name string, err error) string {
	return strings.TrimPrefix(client.OneLine(err.Error()), "open "+name+": ")
}

// together finds inputs that are incompatible with the others, and keeps those with the most common columns. Of equally
// common ones, it keeps those with the fewest columns that no earlier night has written.
func (f *badFinder) together(ctx context.Context) error {
	count, first := map[string]int{}, map[string]string{}
	for _, columns := range f.columns {
		count[columns]++
	}
	names := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return f.bad[name] != "" })
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.attempt.cfg.Resume.Nights(a), f.attempt.cfg.Resume.Nights(b)),
			cmp.Compare(count[f.columns[b]], count[f.columns[a]]), cmp.Compare(f.unwritten(a), f.unwritten(b)))
	})
	// Adding the inputs one by one would be slow, so one input with each set of columns is tried first.
	var firsts []string
	for _, name := range names {
		if columns := f.columns[name]; first[columns] == "" {
			first[columns] = name
			firsts = append(firsts, name)
		}
	}
	if err := f.fit(ctx, firsts); err != nil {
		return err
	}
	left := names[:0:0]
	for _, name := range names {
		if f.bad[first[f.columns[name]]] != "" && f.bad[name] == "" {
			if err := f.fit(ctx, []string{names[0], name}); err != nil {
				return err
			}
		}
		if f.bad[name] == "" {
			left = append(left, name)
		}
	}
	return f.fit(ctx, left)
}

// unwritten returns the number of an input's columns that no earlier night has written.
func (f *badFinder) unwritten(name string) (n int) {
	of, ok := f.request.Selection.(plan.Units)
	for column := range strings.SplitSeq(f.columns[name], "\x00") {
		if ok && of.Units()[f.request.Columns.To(column)] == "" {
			n++
		}
	}
	return n
}

// fit finds inputs that are incompatible with those before them.
func (f *badFinder) fit(ctx context.Context, names []string) error {
	for len(f.bad) <= ledger.MostBad && len(names) > 1 {
		_, err := f.fails(ctx, names...)
		if err == nil {
			return nil
		}
		var other error
		n := sort.Search(len(names)-1, func(i int) bool { // n inputs can be loaded together, n+1 cannot
			_, is := f.fails(ctx, names[:i+2]...)
			if is != nil {
				err = is
			}
			if is != nil && !setsAside(is) {
				other = is
			}
			return is != nil
		}) + 1
		if !setsAside(err) {
			other = err
		}
		if other != nil {
			return other
		}
		if n == len(names) {
			return err
		}
		f.held[names[n]] = true
		f.bad[names[n]] = cmp.Or(f.difference(names[n], names[0]), client.OneLine(err.Error()))
		names = slices.Delete(names, n, n+1)
	}
	return nil
}

// difference describes how the columns of an input differ from another's. It is "" if they do not differ.
func (f *badFinder) difference(name, other string) (why string) {
	has, wanted := strings.Split(f.columns[name], "\x00"), strings.Split(f.columns[other], "\x00")
	part := func(what string, all, of []string) {
		names := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(of, c) })
		if len(names) > 0 {
			why += what + strings.Join(names, ", ")
		}
	}
	part("; it lacks ", wanted, has)
	part("; it has ", has, wanted)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("its columns are not those of %s%s", other, why)
}
