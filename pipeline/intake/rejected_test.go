package intake

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	_ "time/tzdata"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

func TestRejectedBinaryRecordIsJSONLine(t *testing.T) {
	k := rejectWriterOf([]table.Column{{Source: "amount", Type: table.Integer}}, "", false)
	columns := []string{"s", "none", "n", "i", "u", "b", "bin", "j", "amount", "when", "wrong"}
	rec := &record.Record{Fields: []record.Datum{{Kind: record.String, Bytes: []byte("a \"b\"\n")}, {},
		{Kind: record.Number, Bytes: []byte("1.50")}, {Kind: record.Integer, Int: -7}, {Kind: record.Unsigned, Int: -1},
		{Kind: record.Boolean, Int: 1}, {Kind: record.Binary, Bytes: []byte{0, 255}},
		{Kind: record.JSON, Bytes: []byte(`{"x":[1]}`)}, {Kind: record.Decimal, Bytes: []byte{12}},
		{Kind: record.Timestamp, Int: 0, Unit: record.Seconds}, {Kind: record.String, Bytes: []byte{'a', 255}}}}
	line := k.appendRecord([]byte("before\n"), columns, rec)
	const want = "before\n" +
		`{"s":"a \"b\"\n","n":1.50,"i":-7,"u":18446744073709551615,"b":true,"bin":"AP8=","j":"{\"x\":[1]}","amount":12,` +
		`"when":"1970-01-01T00:00:00Z","wrong":<"base64 Yf8=" has no form in JSON that loads as the same value>}` + "\n"
	conformance.Equal(t, string(line), want, "%s", line)
}

// randomDatum returns a value of any kind that binary formats have.
func randomDatum(rnd *rand.Rand) record.Datum {
	units := []record.Unit{record.Seconds, record.Millis, record.Micros, record.Nanos}
	texts := []string{"", "\n", "AP8=", "00ff", "1234", "007", "true", "é", "{}", "2024-01-01", "2024-03-10T02:30:00Z",
		"a\xff", "null", "<b>"}
	some := func() []byte {
		if rnd.IntN(2) == 0 {
			return []byte(texts[rnd.IntN(len(texts))])
		}
		b := make([]byte, rnd.IntN(9))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	at := rnd.Int64N(4e9) - 1e9
	switch kind := record.Kind(rnd.IntN(int(record.Timestamp) + 1)); kind {
	case record.Integer, record.Unsigned:
		return record.Datum{Kind: kind, Int: int64(rnd.Uint64() >> rnd.IntN(64))}
	case record.Double:
		v := []float64{0, math.Copysign(0, -1), 5, 0.1, 1e21, 1e-9, 1.5e300, math.NaN(), math.Inf(1), rnd.NormFloat64()}
		return record.Datum{Kind: kind, Double: v[rnd.IntN(len(v))]}
	case record.Boolean:
		return record.Datum{Kind: kind, Int: rnd.Int64N(2)}
	case record.String, record.Binary:
		return record.Datum{Kind: kind, Bytes: some()}
	case record.JSON:
		nested := []string{`{"b":1,"c":"x"}`, `[1,2]`, `{}`, `[]`, `{"base64":"AP8="}`, `{"a":{"b":null}}`}
		return record.Datum{Kind: kind, Bytes: []byte(nested[rnd.IntN(len(nested))])}
	case record.Decimal:
		return record.Datum{Kind: kind, Scale: int32(rnd.IntN(4)), Bytes: append([]byte{byte(rnd.Uint32())}, some()...)}
	case record.Date:
		return record.Datum{Kind: kind, Int: at / 86400}
	case record.TimeOfDay:
		u := units[rnd.IntN(4)]
		return record.Datum{Kind: kind, Unit: u, Int: rnd.Int64N(86400) * int64(u)}
	case record.Timestamp:
		u := units[rnd.IntN(4)]
		return record.Datum{Kind: kind, Unit: u, Int: at*int64(u) + rnd.Int64N(int64(u)), Local: rnd.IntN(2) == 0}
	}
	return record.Datum{}
}

func randomColumn(rnd *rand.Rand, name string, times []*table.Time) table.Column {
	c := table.Column{Source: name, Name: name}
	types := []table.Type{table.String, table.Integer, table.Double, table.Boolean, table.Binary, table.Any}
	switch n := rnd.IntN(len(types) + 2); n {
	case len(types):
		c.Type, c.Hex = table.Binary, true
	case len(types) + 1:
		c.Type, c.Time = table.Integer, times[rnd.IntN(len(times))]
	default:
		c.Type = types[n]
	}
	if rnd.IntN(3) == 0 && c.Time == nil && !c.Hex {
		c.Exact, c.Inferred = true, true
		if rnd.IntN(2) == 0 {
			c.Own = c.Type
		}
	}
	return c
}

func outcome(t *testing.T, c table.Column, d record.Datum) string {
	t.Helper()
	conv := conformance.Try(convert.New([]string{c.Source}, []table.Column{c}, convert.Options{})).Must(t)
	values, why := conv.Convert(&record.Record{Fields: []record.Datum{d}})
	if why != nil {
		return "refused"
	}
	return fmt.Sprintf("%v %d %x %q", values[0].Type, values[0].Int, math.Float64bits(values[0].Double), values[0].Bytes)
}

// A random record that was rejected, perhaps for another column, is kept as a line that loads as the same cells.
func TestKeptRecordLoadsAsSameCells(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	parsers := map[bool]*jsonl.Parser{}
	for _, flatten := range []bool{false, true} {
		parsers[flatten] = jsonl.NewParser(jsonl.Options{Columns: []string{"c", "m"}, Flatten: flatten, Strict: true})
	}
	var times []*table.Time
	for _, text := range []string{"", ",Asia/Shanghai", ",America/New_York,ns", "datetime,America/New_York,s",
		"date,Asia/Shanghai,s", "%d/%m/%Y %H:%M:%S,UTC,us"} {
		times = append(times, conformance.Try(convert.ParseTime(text)).Must(t))
	}
	loaded, kept := 0, map[string]int{}
	for range 15_000 {
		d := randomDatum(rnd)
		uses := []table.Column{randomColumn(rnd, "c", times)}
		if rnd.IntN(10) == 0 {
			uses = append(uses, randomColumn(rnd, "c", times))
		}
		version := ""
		if rnd.IntN(20) == 0 {
			version = "c"
		}
		read := uses
		if version != "" {
			uses = append(uses, table.Column{Source: "c", Name: "c", Type: table.Integer})
		}
		for flatten, p := range parsers {
			line := rejectWriterOf(read, version, flatten).appendRecord(nil, []string{"c"},
				&record.Record{Fields: []record.Datum{d}})
			p.Reset(line)
			rec, ok := p.Next()
			conformance.MustEqual(t, ok, true, "no record in %s", line)
			if rec.Bad != nil {
				conformance.MustTrue(t, strings.Contains(string(line), `<"`), "%s of %+v is refused: %v", line, d, rec.Bad)
				if len(uses) == 1 && outcome(t, uses[0], d) != "refused" {
					kept[fmt.Sprintf("%d to %v, own %v, flattened %v, time %v", d.Kind, uses[0].Type, uses[0].Own, flatten,
						uses[0].Time != nil)]++
				}
				continue
			}
			loaded++
			for _, c := range uses {
				want, got := outcome(t, c, d), outcome(t, c, rec.Fields[0])
				conformance.MustEqual(t, got, want, "%+v as %+v, flattened %v: kept as %s it loads as", d, c, flatten, line)
			}
		}
	}
	// Flattened bytes in a column of any type, and times that the layout cannot express, cannot be kept.
	for what := range kept {
		if !strings.HasSuffix(what, "time true") && (!strings.HasPrefix(what, fmt.Sprintf("%d to %v, ", record.Binary,
			table.Any)) || !strings.HasSuffix(what, "flattened true, time false")) &&
			what != fmt.Sprintf("%d to %v, own %v, flattened true, time false", record.Binary, table.Binary, table.Binary) &&
			!strings.HasPrefix(what, fmt.Sprintf("%d to %v, own %v, ", record.JSON, table.Binary, table.Binary)) {
			t.Errorf("a value is not kept so that it loads: kind %s", what)
		}
	}
	conformance.True(t, loaded >= 20_000, "%d of 30,000 were loaded", loaded)
}

// A kept line loads with the types of its columns even without the flags that gave these types.
func TestKeptRecordStatesColumnTypes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	p := jsonl.NewParser(jsonl.Options{Columns: []string{"c"}, Strict: true})
	types := []table.Type{table.Integer, table.Double, table.Boolean, table.String, table.Binary}
	loaded := map[table.Type]int{}
	for range 15_000 {
		d, c := randomDatum(rnd), table.Column{Source: "c", Name: "c", Type: types[rnd.IntN(len(types))]}
		if d.Kind == record.JSON && c.Type == table.Binary || d.Kind == record.Number || outcome(t, c, d) == "refused" ||
			d.Kind == record.Null {
			continue
		}
		line := rejectWriterOf([]table.Column{c}, "", false).appendRecord(nil, []string{"c"},
			&record.Record{Fields: []record.Datum{d}})
		p.Reset(line)
		rec, ok := p.Next()
		conformance.MustEqual(t, ok, true, "no record in %s", line)
		in := convert.NewInference(1, convert.Options{})
		in.Add(rec)
		seen := table.Column{Source: "c", Name: "c", Type: in.Type(0), Exact: true, Inferred: true,
			Own: in.Own(0, in.Type(0))}
		want, got := outcome(t, c, d), outcome(t, seen, rec.Fields[0])
		conformance.MustTrue(t, got == want,
			"%+v of a column of %v: kept as %s it is a %v, and loads as %s, want %s", d, c.Type, line, seen.Type, got, want)
		loaded[c.Type]++
	}
	for _, of := range types {
		conformance.True(t, loaded[of] >= 100, "%d values of columns of %v", loaded[of], of)
	}
}

func TestRefusedValueIsKeptUnchanged(t *testing.T) {
	for _, tt := range []struct {
		to   table.Type
		d    record.Datum
		want string
	}{
		{table.Integer, record.Datum{Kind: record.Number, Bytes: []byte("1.50")}, "1.50"},
		{table.Integer, record.Datum{Kind: record.Double, Double: 5.5}, "5.5"},
		{table.Integer, record.Datum{Kind: record.Unsigned, Int: -1}, "18446744073709551615"},
		{table.Double, record.Datum{Kind: record.Double, Double: math.Inf(-1)}, `"-Inf"`},
		{table.Double, record.Datum{Kind: record.Binary, Bytes: []byte{0, 255}}, `{"base64":"AP8="}`},
		{table.Boolean, record.Datum{Kind: record.String, Bytes: []byte("maybe")}, `"maybe"`},
	} {
		line := rejectWriterOf([]table.Column{{Source: "c", Name: "c", Type: tt.to}}, "", false).appendRecord(nil,
			[]string{"c"}, &record.Record{Fields: []record.Datum{tt.d}})
		conformance.Equal(t, string(line), `{"c":`+tt.want+"}\n", "%+v of a column of %v: %s", tt.d, tt.to, line)
	}
}

// outcomes is what is known of an earlier attempt: records below known were read, and final tells which are final.
type outcomes struct {
	known int64
	final func(record int64) bool
	keys  map[string]bool // keys for which Row was called
}

func (o *outcomes) Row(_ int, record int64, key []byte) (final, suspect bool) {
	o.keys[string(key)] = true
	return o.final(record), record < o.known && !o.final(record)
}
func (o *outcomes) Counted(_ int, record int64) bool { return record < o.known }
func (o *outcomes) Unknown(_ int, from int64) bool   { return from >= o.known }
func (o *outcomes) Known(_ int, from, _ int64) bool  { return from < o.known }

// Of 300 records, 200 are known; of these, all but every tenth are final.
func TestResumedFlowHandsOutUnfinishedRecords(t *testing.T) {
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
	begin := func(int) (from source.Place, known source.Chain, skip bool) { return }
	f.Resume(&Resumed{Records: o, Begin: begin})
	var got []place
	conformance.Must(t, runs(t, f, func(p *Parsed) {
		got = append(got, places(p)...)
		for r := range rows(p) {
			record := r.Reject(table.Reason{}).Location.Record - 1
			conformance.Equal(t, r.Row().Suspect(), record < 200, "record %d, suspect", record)
		}
	}))
	conformance.Equal(t, slices.Equal(got, want), true, "%d records, want %d: %v", len(got), len(want), got)
	conformance.True(t, len(o.keys) != 0 && !o.keys[""], "outcomes were not asked for by the rows' keys: %v", o.keys)
}

// One source is read from a given place. The other one, or both, are final and are skipped.
func TestResumedFlowBeginsAtGivenPosition(t *testing.T) {
	a, all := mixed("a.csv", 60)
	b, others := mixed("b.csv", 60)
	at := source.Place{Record: 40, Line: others[40].Line - 1, Offset: int64(len("id,n\n"))}
	for _, p := range others[:40] {
		at.Offset += int64(len(p.Text))
	}
	for n, want := range [][]place{slices.Concat(all, others[40:]), others[40:], nil, slices.Concat(all, others[40:]),
		others[40:], nil} {
		f := flow(t, ask(file(t, "a.csv", a), file(t, "b.csv", b)))
		f.plan.Parallel = n >= 3
		none := &outcomes{final: func(int64) bool { return false }, keys: map[string]bool{}}
		f.Resume(&Resumed{Records: none, Begin: func(i int) (source.Place, source.Chain, bool) {
			return []source.Place{{}, at}[i], source.Chain{}, i < n%3
		}})
		var got []place
		conformance.Must(t, runs(t, f, func(p *Parsed) {
			conformance.Equal(t, p.New, true, "a split of which nothing is known is not said to be new")
			got = append(got, places(p)...)
		}))
		slices.SortStableFunc(got, orderOf)
		conformance.Same(t, got, want, "skipping %d sources, in parallel %v", n%3, n >= 3)
	}
}

// The bytes of key fields stand for a key in comparisons in which the key itself cannot be compared.
func TestKeyFieldBytesAreEqualExactlyIfValuesAre(t *testing.T) {
	text := func(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }
	fields := [][]table.Value{{text("a"), text("bc")}, {text("ab"), text("c")}, {text(""), text("abc")},
		{text("a\x00"), text("b")}, {text("a"), text("\x00b")}, {text("1"), {}}, {{}, text("1")},
		{{Type: table.Integer, Int: 1}, {}}, {{Type: table.Boolean, Int: 1}, {}}, {{Type: table.Double, Double: 1}, {}},
		{{Type: table.Double, Double: 2}, {}},
		{{Type: table.Binary, Bytes: []byte("1")}, {}}, {{Type: table.Integer, Int: -1}, {}}, {{}, {}}}
	seen := map[string]int{}
	for n, row := range fields {
		v := &values{keyFields: []int{0, 1}, last: row}
		got := string(v.appendKeyFields([]byte("x")))
		conformance.True(t, got[0] == 'x' && got[1:] == string(v.appendKeyFields(nil)), "row %d: %x is not appended", n, got)
		other, twice := seen[got]
		conformance.True(t, !twice, "rows %d and %d have the same fields %x", other, n, got)
		seen[got] = n
	}
}

// The ordering key begins with the name of the table. A record without a name is rejected.
func TestFieldsDetermineTableOfRow(t *testing.T) {
	r := ask(file(t, "a.csv", "id,at\na,2024-05-06\nb,2024-06-07\nc,never\nd,2024-05-08\n"))
	r.Target.Table = "t_{month(at)}"
	tables, rejects := map[string]string{}, ""
	conformance.Must(t, runs(t, flow(t, r), func(p *Parsed) {
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
