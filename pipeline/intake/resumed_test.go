package intake

import (
	"fmt"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/source"
)

// outcomes are what an earlier attempt knows of records: of each below known, whether it is final.
type outcomes struct {
	known int64
	final func(record int64) bool
	keys  map[string]bool // that Row was asked about
}

func (o *outcomes) Row(_ int, record int64, key []byte) (final, suspect bool) {
	o.keys[string(key)] = true
	return o.final(record), record < o.known && !o.final(record)
}
func (o *outcomes) Counted(_ int, record int64) bool { return record < o.known }
func (o *outcomes) Unknown(_ int, from int64) bool   { return from >= o.known }
func (o *outcomes) Known(_ int, from, _ int64) bool  { return from < o.known }

// TestAResumedFlowHandsOutWhatIsNotFinal resumes a load of 300 records of which an earlier attempt knew the first 200 and had
// acknowledged all but every tenth: those come again and are suspect, their rejects do not, and what it had not read is new.
func TestAResumedFlowHandsOutWhatIsNotFinal(t *testing.T) {
	text, all := mixed("a.csv", 300)
	path := file(t, "a.csv", text)
	o := &outcomes{known: 200, final: func(r int64) bool { return r < 200 && r%10 != 3 }, keys: map[string]bool{}}
	var want []place
	for i, p := range all {
		if i >= 200 || i%10 == 3 && i%7 != 0 {
			want = append(want, p)
		}
	}
	f := flow(t, ask(path), "k0100")
	f.Resume(&Resumed{Records: o, Begin: func(int) (source.Place, source.Chain, bool) { return source.Place{}, source.Chain{}, false }})
	var got []place
	must(t, runs(t, f, func(p *Parsed) {
		got = append(got, places(p)...)
		for r := range rows(p) {
			record := r.Reject(table.Reason{}).Location.Record - 1
			conformance.Equal(t, r.Row().Suspect(), record < 200, "record %d, suspect", record)
		}
	}))
	if !slices.Equal(got, want) {
		t.Errorf("%d records, want %d: %v", len(got), len(want), got)
	}
	if len(o.keys) == 0 || o.keys[""] {
		t.Errorf("outcomes were not asked for by the rows' keys: %v", o.keys)
	}
}

// TestAResumedFlowBeginsAtTheGivenPosition: a source is read from the given place on, and one that is final is not read.
func TestAResumedFlowBeginsAtTheGivenPosition(t *testing.T) {
	a, all := mixed("a.csv", 60)
	b, others := mixed("b.csv", 60)
	first := others[40]
	at := source.Place{Record: 40, Line: first.Line - 1, Offset: int64(len("id,n\n"))}
	for _, p := range others[:40] {
		at.Offset += int64(len(p.Text))
	}
	for skip := range 2 {
		f := flow(t, ask(file(t, "a.csv", a), file(t, "b.csv", b)))
		none := &outcomes{final: func(int64) bool { return false }, keys: map[string]bool{}}
		f.Resume(&Resumed{Records: none, Begin: func(n int) (source.Place, source.Chain, bool) {
			if n == 0 {
				return source.Place{}, source.Chain{}, skip == 1
			}
			return at, source.Chain{}, false
		}})
		want := others[40:]
		if skip == 0 {
			want = slices.Concat(all, want)
		}
		var got []place
		must(t, runs(t, f, func(p *Parsed) {
			if !p.New {
				t.Error("a split of which nothing is known is not said to be new")
			}
			got = append(got, places(p)...)
		}))
		if !slices.Equal(got, want) {
			t.Errorf("skipping %d sources: %d records, want %d; the first is %v", skip, len(got), len(want), got[:min(1, len(got))])
		}
	}
}

// TestKeyFieldsDifferExactlyIfTheirValuesDo: they stand for the key in --keep, where it cannot be compared itself.
func TestKeyFieldsDifferExactlyIfTheirValuesDo(t *testing.T) {
	text := func(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }
	fields := [][]table.Value{
		{text("a"), text("bc")}, {text("ab"), text("c")}, {text(""), text("abc")}, {text("a\x00"), text("b")}, {text("a"), text("\x00b")},
		{text("1"), {}}, {{}, text("1")}, {{Type: table.Integer, Int: 1}, {}}, {{Type: table.Boolean, Int: 1}, {}}, {{Type: table.Double, Double: 1}, {}},
		{{Type: table.Binary, Bytes: []byte("1")}, {}}, {{Type: table.Integer, Int: -1}, {}}, {{}, {}},
	}
	seen := map[string]int{}
	for n, row := range fields {
		v := &values{keyFields: []int{0, 1}, last: row}
		got := string(v.appendKeyFields([]byte("x")))
		if got[0] != 'x' || got[1:] != string(v.appendKeyFields(nil)) {
			t.Errorf("row %d: %x is not appended", n, got)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("rows %d and %d have the same fields %x", other, n, got)
		}
		seen[got] = n
	}
}

// TestRowsGoToTheTableOfTheirFields: the name is made of the record, the ordering key begins with it, and a record without a name
// is rejected.
func TestRowsGoToTheTableOfTheirFields(t *testing.T) {
	in := "id,at\na,2024-05-06\nb,2024-06-07\nc,never\nd,2024-05-08\n"
	r := ask(file(t, "a.csv", in))
	r.Target.Table = "t_{month(at)}"
	tables, rejects := map[string]string{}, ""
	must(t, runs(t, flow(t, r), func(p *Parsed) {
		for r := range rows(p) {
			name, _ := table.CutTable(r.Key())
			tables[string(r.Record()[:1])] = string(name)
		}
		for _, r := range p.Rejects {
			rejects += string(r.Raw[:1]) + " " + r.Reason.Code
		}
	}))
	if got := fmt.Sprint(tables); got != "map[a:t_202405 b:t_202406 d:t_202405]" || rejects == "" || rejects[0] != 'c' {
		t.Errorf("%s, rejects %q", got, rejects)
	}
}
