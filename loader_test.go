package tsimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
)

func TestLoaderWritesValuesUnchanged(t *testing.T) {
	w := newWorld(t)
	defer noLeaks(t)()
	ctx := context.Background()
	o := loaderOptions()
	o.PK, o.MaxVersions = []string{"id:string", "n:integer", "raw:binary"}, 3
	l := w.open(ctx, o)
	now := time.Now()
	raw := []byte{1, 2}
	row := Row{Columns: []Column{
		Int64("n", -5), Float64("double", 0.5), String("id", "a"), Bytes("raw", raw), Bool("yes", true), Bool("no", false),
		String("empty", ""),
		Bytes("bytes", raw), Null("null"), Int64("v", 1).At(now), Int64("v", 2).At(now.Add(-time.Second)),
		String("v", "3").At(now.Add(-2 * time.Second)),
	}}
	must(t, l.Put(ctx, row))
	raw[0] = 9 // the row was copied
	must(t, l.Flush(ctx))
	conformance.Equal(t, l.Counts(), Counts{Accepted: 1, Written: 1}, "counts")
	w.close(l)
	got := w.rows(3)
	text := got["a/-5/[1 2]"]
	for _, want := range []string{
		"bytes=[]uint8 [1 2]@", "double=float64 0.5@", "empty=string @", "no=bool false@", "yes=bool true@",
		fmt.Sprintf("v=int64 1@%d v=int64 2@%d v=string 3@%d", now.UnixMilli(), now.UnixMilli()-1000, now.UnixMilli()-2000),
	} {
		conformance.Contains(t, text, want, "text")
	}
	conformance.True(t, len(got) == 1 && !strings.Contains(text, "null="), "%q", got)
}

func TestModesAndConditionsMatchTheCommand(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	put := func(o LoaderOptions, rows ...[]Column) (ends []string) {
		t.Helper()
		l := w.open(ctx, o)
		for _, columns := range rows {
			err := l.Put(ctx,
				Row{Columns: columns,
					Done: func(out Outcome) { ends = append(ends, strings.TrimSpace(out.End.String()+" "+out.Code)) }})
			if err == nil {
				err = l.Flush(ctx)
			}
			must(t, err)
		}
		w.close(l)
		return ends
	}
	o := loaderOptions()
	id := func(v string, more ...Column) []Column { return append([]Column{String("id", v)}, more...) }
	check := func(got []string, want ...string) {
		t.Helper()
		conformance.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "ends")
	}
	check(put(o, id("a", Int64("x", 1), Int64("y", 1)), id("b", Int64("x", 1)), id("c")), "written", "written", "written")
	o.Mode = "update"
	check(put(o, id("a", Int64("x", 2), Null("y")), id("b")), "written", "rejected NoCells")
	o.OnNull = "delete"
	check(put(o, id("b", Null("x"), Int64("z", 3))), "written")
	o = loaderOptions()
	o.Condition = "not-exist"
	check(put(o, id("a"), id("d", String("s", "new"))), "rejected OTSConditionCheckFail", "written")
	o = loaderOptions()
	o.Mode = "delete"
	check(put(o, id("c", String("ignored", "x"))), "written")
	want := map[string]string{"a": "x=int64 2 y=int64 1", "b": "z=int64 3", "d": "s=string new"}
	got := w.rows(1)
	conformance.True(t, maps.Equal(got, want), "the table has %q, want %q", got, want)
}

func TestInvalidRowsAreRejectedWithReason(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	l := w.open(ctx, loaderOptions())
	id := String("id", "a")
	var many []Column
	for i := range 1025 {
		many = append(many, Int64(fmt.Sprint("c", i), 1))
	}
	cases := []struct {
		columns      []Column
		code, column string
	}{
		{nil, "NullKey", "id"},
		{[]Column{Null("id")}, "NullKey", "id"},
		{[]Column{Int64("id", 5)}, "WrongType", "id"},
		{[]Column{id, id}, "DuplicateCell", "id"},
		{[]Column{id.At(time.Now())}, "WrongType", "id"},
		{[]Column{id, Int64("x", 1), Int64("x", 2)}, "DuplicateCell", "x"},
		{[]Column{id, Int64("x", 1).At(time.Now()), Int64("x",
			2).At(time.Now().Add(-time.Minute).Truncate(time.Hour).Add(-48 * time.Hour))}, "OutOfRange", "x"},
		{[]Column{id, Int64("x", 1).At(time.Unix(-5, 0))}, "OutOfRange", "x"},
		{[]Column{id, Int64("", 1)}, "BadColumnName", ""},
		{[]Column{id, Int64(strings.Repeat("n", 300), 1)}, "BadColumnName", ""},
		{[]Column{id, String("x", "\xff")}, "InvalidUTF8", "x"},
		{[]Column{id, Bytes("x", make([]byte, 2<<20+1))}, "ValueTooLong", "x"},
		{[]Column{id, Bytes("x", make([]byte, 2<<20)), Bytes("y", make([]byte, 2<<20))}, "RowTooLarge", ""},
		{[]Column{id, Bytes("x", make([]byte, 9<<20))}, "RowTooLarge", ""},
		{[]Column{String("id", strings.Repeat("k", 1025))}, "KeyTooLong", "id"},
		{append(many, id), "TooManyColumns", ""},
	}
	for i, c := range cases {
		var got Outcome
		must(t, l.Put(ctx, Row{Columns: c.columns, Done: func(o Outcome) { got = o }}))
		conformance.Equal(t, l.Flush(ctx), nil, "Flush")
		if got.End != Rejected || got.Code != c.code || c.column != "" && got.Column != c.column || got.Message == "" ||
			got.Number != int64(i)+1 {
			t.Errorf("row %d: %+v, want code %s", i+1, got, c.code)
		}
	}
	n := int64(len(cases))
	c := w.close(l)
	conformance.True(t, c.Rejected == n && c.Accepted == n, "%+v", c)
	got := w.rows(1)
	conformance.True(t, len(got) == 0, "rows were written: %q", got)
}

// Flush and Close return an error if a row without a Done was rejected, so no rejection goes unnoticed.
func TestRejectedRowsWithoutDoneAreAnError(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	l := w.open(ctx, loaderOptions())
	for i := range 5 {
		must(t, l.Put(ctx, Row{Columns: []Column{Int64("id", int64(i))}}))
	}
	must(t, l.Put(ctx, Row{Columns: []Column{Int64("id", 6)}, Done: func(Outcome) {}}))
	var rejected *RejectedError
	if err := l.Flush(ctx); !errors.As(err, &rejected) || rejected.Rows != 5 || rejected.First.Number != 1 ||
		rejected.First.Code != "WrongType" {
		t.Errorf("flush: %v", err)
	}
	conformance.Equal(t, l.Flush(ctx), nil, "flush again")
	for range 2 {
		c, err := l.Close(ctx)
		if rejected = nil; !errors.As(err, &rejected) || rejected.Rows != 5 ||
			!strings.Contains(err.Error(), "5 rows were rejected; the first is row 1: WrongType: column id: ") {
			t.Errorf("close: %v", err)
		}
		conformance.Equal(t, c, Counts{Accepted: 6, Rejected: 6}, "counts")
	}
	conformance.Is(t, l.Put(ctx, Row{}), ErrClosed, "put after close")
	conformance.Equal(t, l.Flush(ctx), nil, "flush after close")
}

func TestOpenErrorsAreDistinguishable(t *testing.T) {
	w := newWorld(t)
	defer noLeaks(t)()
	ctx := context.Background()
	stopped, stop := context.WithCancel(ctx)
	stop()
	wrong := w.target()
	wrong.AccessKeySecret = "wrong"
	for name, tt := range map[string]struct {
		ctx    context.Context
		target Target
		table  string
		o      LoaderOptions
		is     error
		usage  string
	}{
		"missing":     {ctx, w.target(), "t", LoaderOptions{}, ErrTableMissing, ""},
		"permission":  {ctx, wrong, "t", loaderOptions(), ErrPermission, ""},
		"interrupted": {stopped, w.target(), "t", loaderOptions(), ErrInterrupted, ""},
		"no type":     {ctx, w.target(), "t", LoaderOptions{Create: true, PK: []string{"id"}}, nil, "give its type"},
		"no key":      {ctx, w.target(), "t", LoaderOptions{Create: true}, nil, "set PK"},
		"expression": {ctx, w.target(), "t", LoaderOptions{Create: true, PK: []string{"id:string=a"}}, nil,
			"computes no columns"},
		"numbered": {ctx, w.target(), "t", LoaderOptions{Create: true, PK: []string{"id:string", "n:auto"}}, nil,
			"auto-increment"},
		"mode":        {ctx, w.target(), "t", LoaderOptions{Mode: "replace"}, nil, `Mode "replace"`},
		"increment":   {ctx, w.target(), "t", LoaderOptions{Mode: "increment"}, nil, "Mode increment"},
		"memory":      {ctx, w.target(), "t", LoaderOptions{Memory: 1 << 20}, nil, "Memory"},
		"concurrency": {ctx, w.target(), "t", LoaderOptions{Concurrency: -1}, nil, "Concurrency"},
		"null of a put": {ctx, w.target(), "t", LoaderOptions{Create: true, PK: []string{"id:string"}, OnNull: "delete"},
			nil, "OnNull delete needs Mode update"},
		"several tables":  {ctx, w.target(), "t_{id}", loaderOptions(), nil, "one table"},
		"name of a table": {ctx, w.target(), "9", loaderOptions(), nil, "table name"},
		"endpoint":        {ctx, Target{Endpoint: "ftp://x", Instance: "i"}, "t", LoaderOptions{}, nil, "endpoint"},
		"half a key": {ctx, Target{Endpoint: "http://x", Instance: "i", AccessKeyID: "a"}, "t", LoaderOptions{}, nil,
			"only one of them"},
	} {
		l, err := Open(tt.ctx, tt.target, tt.table, tt.o)
		if l != nil || err == nil || tt.is != nil && !errors.Is(err, tt.is) || tt.is == nil &&
			(!errors.As(err, new(*UsageError)) || !strings.Contains(err.Error(), tt.usage)) {
			t.Errorf("%s: %v, %T", name, err, err)
		}
	}
	conformance.Is(t, conformance.ErrorOf(Open(stopped, w.target(), "t", loaderOptions())), context.Canceled,
		"the context's cause is lost")
}

// A row is sent without Flush, even if neither its buffer nor its batch is full.
func TestSingleRowIsSentWithoutFlush(t *testing.T) {
	w := newWorld(t)
	l := w.open(context.Background(), loaderOptions())
	for n := range int64(3) {
		written := make(chan Outcome)
		must(t, l.Put(t.Context(), Row{Columns: []Column{String("id", "a")}, Done: func(o Outcome) { written <- o }}))
		conformance.Equal(t, <-written, Outcome{Number: n + 1, End: Written}, "written")
	}
	w.close(l)
}

// Close releases the network connections of a Loader, and its goroutines.
func TestCloseReleasesConnections(t *testing.T) {
	w := newWorld(t)
	s := httptest.NewServer(w.Server)
	defer s.Close()
	to := w.target()
	to.Endpoint, to.Transport = s.URL, nil
	check := noLeaks(t)
	l := conformance.Try(Open(context.Background(), to, "t", loaderOptions())).Must(t)
	for n := range 5000 {
		must(t, l.Put(context.Background(), Row{Columns: []Column{String("id", fmt.Sprint(n))}}))
	}
	conformance.Equal(t, w.close(l).Written, 5000, "written")
	check()
}

// A row is reported as maybe applied if its first attempt was applied without an answer and its second was refused.
func TestRowRefusedAfterLostAnswerIsMaybeApplied(t *testing.T) {
	for mode, refusal := range map[string]faults.Fault{
		"put":    {Action: faults.RefuseRows, RowCode: func(int) string { return "OTSParameterInvalid" }},
		"update": {Action: faults.Refuse, Code: "OTSParameterInvalid"},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			ctx := context.Background()
			o := loaderOptions()
			o.Mode = mode
			l := w.open(ctx, o)
			w.plan.Change(nil, func(r faults.Request) faults.Fault {
				if r.N == 0 {
					return faults.Fault{Action: faults.DropAfter}
				}
				return refusal
			})
			var got []Outcome
			put := func(id string) {
				t.Helper()
				err := l.Put(ctx, Row{Columns: []Column{String("id", id), Int64("v", 1)},
					Done: func(out Outcome) { got = append(got, out) }})
				if err == nil {
					err = l.Flush(ctx)
				}
				must(t, err)
			}
			put("applied")
			put("refused")
			if c := w.close(l); c.Rejected != 2 || c.MaybeApplied != 1 || !got[0].MaybeApplied || got[1].MaybeApplied ||
				got[1].Code != "OTSParameterInvalid" {
				t.Errorf("%+v, %+v", c, got)
			}
			rows := w.rows(1)
			conformance.True(t, len(rows) == 1 && rows["applied"] != "", "the table has %q", rows)
		})
	}
}

// When a Done ends its goroutine, as FailNow does in a test, every other row's outcome is still delivered.
func TestDoneThatEndsItsGoroutineAffectsNoOtherDone(t *testing.T) {
	w := newWorld(t)
	defer noLeaks(t)()
	ctx := context.Background()
	l := w.open(ctx, loaderOptions())
	told := &outcomes{}
	for n := range int64(100) {
		done := told.of(n)
		must(t, l.Put(ctx, Row{Columns: []Column{String("id", fmt.Sprint(n))}, Done: func(o Outcome) {
			done(o)
			if n%10 == 5 {
				runtime.Goexit()
			}
		}}))
	}
	must(t, l.Flush(ctx))
	c := w.close(l)
	told.check(t, c)
	conformance.Equal(t, c.Written, 100, "%+v", c)
}

// Rows that wait long, such as a slow partition's, do not keep rows put with or after them in memory.
func TestWaitingRowsRetainNoOtherMemory(t *testing.T) {
	const batches, rows = 300, 500
	var g rowOutcomes
	told := make([]int, batches*rows)
	for b := range batches {
		g.live = append(g.live, &batch{first: int64(b * rows)})
		for i := range rows {
			g.accept(func(o Outcome) { told[b*rows+i]++ })
		}
		g.live[len(g.live)-1].whole = true
	}
	end := func(of func(n int) bool) {
		for n := range batches * rows {
			if of(n) {
				g.ends = append(g.ends, ending{record: int64(n), end: Written})
			}
		}
		ends := g.take(nil)
		tell(ends)
		g.delivered(ends)
	}
	// One row of every tenth batch waits.
	waits := func(n int) bool { return n%(10*rows) == 7 }
	end(func(n int) bool { return !waits(n) && n%2 == 0 })
	end(func(n int) bool { return !waits(n) && n%2 == 1 })
	held := 0
	for _, b := range g.live {
		held += len(b.done) + len(b.few)
	}
	conformance.True(t, len(g.live) <= 2*batches/10 && held <= batches/10,
		"%d rows hold %d batches with %d Dones", batches/10, len(g.live), held)
	conformance.Equal(t, g.final(8), false, "row 8 has an outcome")
	end(func(n int) bool { return waits(n) && n < batches*rows/2 })
	rest := g.abandon()
	tell(rest)
	conformance.True(t, len(rest) == batches/20 && g.counts.Written == batches*rows-batches/20,
		"%d rows are left, %+v", len(rest), g.counts)
	for n, times := range told {
		conformance.MustEqual(t, times, 1, "outcomes told of row %d", n)
	}
}
