package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

// hasher is shared by all judges of a test.
var hasher = plainbuffer.NewHasher()

// newJudge returns a judge for a table that keeps a number of versions of each cell, and no cells older than oldest.
func newJudge(mode table.Mode, versions int, oldest, loaded int64, names ...string) *judge {
	j := &judge{Hasher: hasher, mode: mode, versions: versions, oldest: oldest, loaded: loaded,
		names: map[uint64]string{}, hashes: map[string]uint64{}, got: map[uint64][]got{}}
	for _, name := range names {
		j.names[j.Column(name)] = name
	}
	return j
}

// TestSingleDifferingCellIsFound tests every state of a cell in each of three columns, with and without a timestamp.
func TestSingleDifferingCellIsFound(t *testing.T) {
	const oldest, at, expired = 100, 200, 50
	type stored struct {
		at    int64
		value string
	}
	type state struct {
		name       string
		stamp      int64 // expected timestamp; -1 means the time of writing
		have       []stored
		put, after bool // whether a put, or an update in a table with one version, leaves this state
	}
	states := []state{
		{"equal", at, []stored{{at, "v"}}, true, true},
		{"of the table's time", -1, []stored{{at + 1, "v"}}, true, true},
		{"missing", at, nil, false, false},
		{"missing, of the table's time", -1, nil, false, false},
		{"expired", expired, nil, true, true},
		{"kept though it may expire", expired, []stored{{expired, "v"}}, true, true},
		{"at the limit", oldest, nil, false, false},
		{"another value", at, []stored{{at, "w"}}, false, false},
		{"another value, of the table's time", -1, []stored{{at, "w"}}, false, false},
		{"another time", at, []stored{{at - 1, "v"}}, false, false},
		{"two versions", at, []stored{{at, "v"}, {at - 1, "v"}}, false, true},
		{"an older version first", at, []stored{{at + 1, "w"}, {at, "v"}}, false, true}, // another writer's version is newer
	}
	names := []string{"a", "b", "c"}
	check := func(of ...state) {
		t.Helper()
		row := &scan.Row{PrimaryKey: idKey(1)}
		puts, updates := newJudge(table.Put, 1, oldest, -1, names...), newJudge(table.Update, 1, oldest, -1, names...)
		w := &want{columns: map[uint64]*stateOf{}}
		var cells []cell
		var wantPut, wantUpdate []string
		for i, s := range of {
			c := cell{column: puts.Column(names[i]), stamp: s.stamp, hash: puts.delivered(puts.Column(names[i]), "v")}
			cells = append(cells, c)
			w.columns[c.column] = new(stateOf)
			w.columns[c.column].update(c, false)
			for _, v := range s.have {
				row.Columns = append(row.Columns, &tablestore.AttributeColumn{ColumnName: names[i], Timestamp: v.at,
					Value: v.value})
			}
			if !s.put {
				wantPut = append(wantPut, names[i])
			}
			if !s.after {
				wantUpdate = append(wantUpdate, names[i])
			}
		}
		w.versions = []version{{cells: cells}}
		for _, c := range []struct {
			j    *judge
			want []string
		}{{puts, wantPut}, {updates, wantUpdate}} {
			verdict, d := c.j.compare(w, row)
			conformance.MustTrue(t, (verdict == isEqual) == (len(c.want) == 0) &&
				(verdict == isEqual || verdict == isDifferent) && slices.Equal(d.columns, c.want),
				"mode %v, %v: verdict %d, columns %q, want %q", c.j.mode, of, verdict, d.columns, c.want)
		}
	}
	for _, a := range states {
		for _, b := range states {
			for _, c := range states {
				check(a, b, c)
			}
		}
	}
}

type stateOf = state

func TestUpdatesOfOneCell(t *testing.T) {
	const old = 50 // expired, because the table keeps timestamps of 100 and above
	for _, c := range []struct {
		what        string
		versions    int
		s           state
		have        []got
		ok, expired bool
	}{
		{"the last value", 1, state{values: []uint64{1}}, []got{{200, 1}}, true, false},
		{"any of several", 1, state{values: []uint64{1, 2}}, []got{{200, 2}}, true, false},
		{"another value", 1, state{values: []uint64{1}}, []got{{200, 2}}, false, false},
		{"a value that is older than another", 2, state{values: []uint64{1}}, []got{{201, 2}, {200, 1}}, false, false},
		{"none", 1, state{values: []uint64{1}}, nil, false, false},
		{"none, which may be", 1, state{values: []uint64{1}, absent: true}, nil, true, false},
		{"another, though none may be", 1, state{values: []uint64{1}, absent: true}, []got{{200, 2}}, false, false},
		{"deleted", 1, state{absent: true}, nil, true, false},
		{"deleted and there", 1, state{absent: true}, []got{{200, 1}}, false, false},
		{"its version", 1, state{stamped: []stamp{{200, []uint64{1}}}}, []got{{200, 1}}, true, false},
		{"its version, of several values", 1, state{stamped: []stamp{{200, []uint64{1, 2}}}}, []got{{200, 2}}, true, false},
		{"its version with another value", 1, state{stamped: []stamp{{200, []uint64{1}}}}, []got{{200, 2}}, false, false},
		{"its value at another time", 1, state{stamped: []stamp{{200, []uint64{1}}}}, []got{{201, 1}}, false, false},
		{"no version", 1, state{stamped: []stamp{{200, []uint64{1}}}}, nil, false, false},
		{"no version, which may be", 1, state{stamped: []stamp{{200, []uint64{1}}}, absent: true}, nil, true, false},
		{"another version, though none may be", 1, state{stamped: []stamp{{200, []uint64{1}}}, absent: true}, []got{{300, 3}},
			false, false},
		{"a version that has expired", 1, state{stamped: []stamp{{old, []uint64{1}}}}, nil, true, true},
		{"the newest has not expired", 2, state{stamped: []stamp{{200, []uint64{1}}, {old, []uint64{2}}}}, []got{{200, 1}},
			true, true},
		{"the newest is gone, the other not", 2, state{stamped: []stamp{{200, []uint64{1}}, {old, []uint64{2}}}},
			[]got{{old, 2}}, false, false},
		{"more versions than are kept", 2, state{stamped: []stamp{{300, []uint64{1}}, {200, []uint64{2}},
			{150, []uint64{3}}}}, []got{{300, 1}, {200, 2}}, true, false},
		{"the second of those that are kept", 2, state{stamped: []stamp{{300, []uint64{1}}, {200, []uint64{2}},
			{150, []uint64{3}}}}, []got{{300, 1}, {150, 3}}, false, false},
		{"a value takes the place of a version", 2, state{values: []uint64{9},
			stamped: []stamp{{300, []uint64{1}}, {200, []uint64{2}}}}, []got{{400, 9}, {300, 1}}, true, false},
		{"a value and the wrong version", 2, state{values: []uint64{9},
			stamped: []stamp{{300, []uint64{1}}, {200, []uint64{2}}}}, []got{{400, 9}, {200, 2}}, false, false},
		{"a version of a time to come", 2, state{values: []uint64{9}, stamped: []stamp{{900, []uint64{1}}}},
			[]got{{900, 1}, {400, 9}}, true, false},
	} {
		j := newJudge(table.Update, c.versions, 100, -1)
		ok, expired := j.holds(&c.s, c.have)
		conformance.True(t, ok == c.ok && expired == c.expired, "%s: %v, expired %v", c.what, ok, expired)
	}
	j := newJudge(table.Update, 1, 100, old) // cells without a timestamp have also expired
	ok, expired := j.holds(&state{values: []uint64{1}}, nil)
	conformance.True(t, ok && expired, "a value that has expired: %v, %v", ok, expired)
}

func TestNewestVersionsOfACellAreKept(t *testing.T) {
	of := func(stamp int64, hash uint64) cell { return cell{column: 7, stamp: stamp, hash: hash} }
	for what, c := range map[string]struct {
		versions int
		loaded   int64
		want     []cell // newest first, with a cell without a timestamp last
		have     []got
		same     bool
	}{
		"all":                         {3, -1, []cell{of(300, 1), of(200, 2)}, []got{{300, 1}, {200, 2}}, true},
		"the first is missing":        {3, -1, []cell{of(300, 1), of(200, 2)}, []got{{200, 2}}, false},
		"the last is missing":         {3, -1, []cell{of(300, 1), of(200, 2)}, []got{{300, 1}}, false},
		"the middle is missing":       {3, -1, []cell{of(300, 1), of(250, 3), of(200, 2)}, []got{{300, 1}, {200, 2}}, false},
		"one more":                    {3, -1, []cell{of(300, 1)}, []got{{300, 1}, {200, 2}}, false},
		"another value":               {3, -1, []cell{of(300, 1), of(200, 2)}, []got{{300, 1}, {200, 3}}, false},
		"another time":                {3, -1, []cell{of(300, 1), of(200, 2)}, []got{{300, 1}, {201, 2}}, false},
		"only as many as are kept":    {1, -1, []cell{of(300, 1), of(200, 2)}, []got{{300, 1}}, true},
		"one that has expired":        {3, -1, []cell{of(300, 1), of(50, 2)}, []got{{300, 1}}, true},
		"none":                        {3, -1, []cell{of(300, 1)}, nil, false},
		"table's time, newest":        {3, -1, []cell{of(200, 2), of(-1, 1)}, []got{{300, 1}, {200, 2}}, true},
		"table's time, oldest":        {3, -1, []cell{of(400, 2), of(-1, 1)}, []got{{400, 2}, {300, 1}}, true},
		"table's time, alone":         {3, -1, []cell{of(-1, 1)}, []got{{300, 1}}, true},
		"table's time, another value": {3, -1, []cell{of(-1, 1)}, []got{{300, 2}}, false},
		"table's time, none":          {3, -1, []cell{of(-1, 1)}, nil, false},
		"table's time, expired":       {3, 50, []cell{of(-1, 1)}, nil, true},
		"table's time, one more":      {3, -1, []cell{of(-1, 1)}, []got{{300, 1}, {200, 1}}, false},
		"it takes a version's place":  {2, -1, []cell{of(300, 3), of(200, 2), of(-1, 1)}, []got{{400, 1}, {300, 3}}, true},
		"all are newer":               {2, 250, []cell{of(300, 3), of(260, 2), of(-1, 1)}, []got{{300, 3}, {260, 2}}, true},
		"all but one are newer":       {2, 270, []cell{of(300, 3), of(260, 2), of(-1, 1)}, []got{{300, 3}, {260, 2}}, false},
	} {
		j := newJudge(table.Put, c.versions, 100, c.loaded)
		conformance.Equal(t, j.sameVersions(c.want, c.have), c.same, "%s", what)
		// Compare the column among other columns, at any position and in any order.
		j.wide = true
		for _, other := range []uint64{1, 9} {
			j.got = map[uint64][]got{other: {{300, 5}}}
			if len(c.have) > 0 {
				j.got[7] = c.have
			}
			cells := append([]cell{{column: other, stamp: 300, hash: 5}}, c.want...)
			slices.Reverse(cells)
			if columns := j.differ(cells); (len(columns) == 0) != c.same || len(columns) > 1 || !c.same && columns[0] != 7 {
				t.Errorf("%s, beside column %d: %v differ", what, other, columns)
			}
			columns := j.differ(slices.Clone(c.want))
			conformance.True(t, slices.Contains(columns, other), "%s: column %d is surplus, and %v differ", what, other, columns)
		}
	}
}

func TestOlderVersionIsFoundInAnyColumn(t *testing.T) {
	for columns, odd := range map[string]string{"": "", "a": "", "abc": "", "aabc": "a", "abbc": "b", "abcc": "c",
		"aaabc": "a", "abbbc": "b", "abccc": "c", "aabbcc": "abc", "aabcc": "ac"} {
		j, row := newJudge(table.Put, 3, -1, -1), &scan.Row{}
		for i, c := range columns {
			row.Columns = append(row.Columns, &tablestore.AttributeColumn{ColumnName: string(c), Timestamp: int64(100 - i),
				Value: "v"})
		}
		var expected []uint64
		for _, c := range odd {
			expected = append(expected, j.Column(string(c)))
		}
		got := j.older(row)
		conformance.True(t, slices.Equal(got, expected), "%s: %v, want %s", columns, got, odd)
		// A record with only the newest versions does not equal a row that also has older ones.
		j.wide = true
		w := &want{versions: []version{{whole: true, hash: j.sum(row)}}}
		if verdict, d := j.compare(w, row); (verdict == isEqual) != (odd == "") || len(d.unnamed)+len(d.columns) != len(odd) {
			t.Errorf("%s: %d, %+v", columns, verdict, d)
		}
	}
}

func TestFullyExpiredRowIsNotMissing(t *testing.T) {
	young, old := cell{stamp: 200}, cell{stamp: 50}
	for what, c := range map[string]struct {
		versions []version
		loaded   int64
		want     verdict
	}{
		"whole":              {[]version{{whole: true}}, -1, isMissing},
		"whole, old load":    {[]version{{whole: true}}, 50, isExpired},
		"old cells":          {[]version{{cells: []cell{old, old}}}, -1, isExpired},
		"the first is young": {[]version{{cells: []cell{young, old, old}}}, -1, isMissing},
		"one is young":       {[]version{{cells: []cell{old, young, old}}}, -1, isMissing},
		"the last is young":  {[]version{{cells: []cell{old, old, young}}}, -1, isMissing},
		"another record is":  {[]version{{cells: []cell{old}}, {cells: []cell{young}}, {cells: []cell{old}}}, -1, isMissing},
		"another is whole":   {[]version{{cells: []cell{old}}, {whole: true}}, -1, isMissing},
	} {
		got, _ := newJudge(table.Put, 1, 100, c.loaded).compare(&want{versions: c.versions}, nil)
		conformance.Equal(t, got, c.want, "%s", what)
	}
}

func TestStoredRowsAreReadUnchangedOrRefused(t *testing.T) {
	for name, memory := range map[string]int{"memory": 1 << 20, "disk": 100, "nothing but disk": 0} {
		dir := t.TempDir()
		store := conformance.Try(spill.Open(spill.Options{Dir: dir})).Must(t)
		a := &aside{store: store, memory: memory}
		var places []byte
		for n := range 50 {
			b := new(table.Block)
			for i := range 3 {
				b.AppendMade([]byte("key"), fmt.Appendf(nil, "body %d of block %d", i, n), 5000*i, table.Span{})
			}
			must(t, a.add(b))
			for i := range b.Rows {
				value := a.appendPlace([]byte("value"), table.Ref{Block: b, Index: int32(i)})
				reduced, place := cutPlace(value)
				conformance.Equal(t, string(reduced), "value", "reduced")
				places = append(places, place...)
			}
			b.Reset()
		}
		read := func() (failed int) {
			rest := places
			for n := range 150 {
				var p place
				p, rest = placeOf(rest)
				body, err := a.read(p)
				if err != nil {
					failed++
					continue
				}
				want := fmt.Sprintf("body %d of block %d", n%3, n/3)
				conformance.True(t, string(body) == want && p.units == uint64(table.CapacityUnits(n%3*5000)),
					"%s: %q of %d units, want %q", name, body, p.units, want)
			}
			conformance.Equal(t, len(rest), 0, "%s: what is left", name)
			return failed
		}
		conformance.Equal(t, read(), 0, "%s: rows that cannot be read", name)
		files := conformance.Try(filepath.Glob(filepath.Join(dir, "*", "frames*"))).Must(t)
		conformance.Equal(t, len(files) > 0, memory < 1<<20, "%s: there is a file", name)
		for _, file := range files {
			data := conformance.Try(os.ReadFile(file)).Must(t)
			data[bytes.LastIndex(data, []byte("body 1"))]++
			must(t, os.WriteFile(file, data, 0o600))
			conformance.Equal(t, read(), 1, "%s: rows that cannot be read", name)
		}
		must(t, store.Close())
	}
}

// oddSource is a source that fails once, at the point named by fails.
type oddSource struct {
	source.Source
	fails string
}

var errOdd = errors.New("odd")

func (o *oddSource) Next() (source.Piece, error) {
	p, err := o.Source.Next()
	if o.fails == "next" {
		return nil, errOdd
	}
	return oddPiece{p, o.fails}, err
}

type oddPiece struct {
	source.Piece
	fails string
}

func (p oddPiece) Prepare() error {
	if p.fails == "prepare" {
		return errOdd
	}
	return p.Piece.Prepare()
}

func (o *oddSource) Add(p source.Piece) ([]source.Split, error) {
	splits, err := o.Source.Add(p.(oddPiece).Piece)
	if o.fails == "add" {
		err = errOdd
	}
	return splits, err
}

func (o *oddSource) Finish() ([]source.Split, error) {
	splits, err := o.Source.Finish()
	if o.fails == "finish" {
		err = errOdd
	}
	return splits, err
}

func (o *oddSource) Close() error {
	if o.fails == "close" {
		return errOdd
	}
	return o.Source.Close()
}

func (o *oddSource) NewParser(used []int) source.Parser {
	return &oddParser{o.Source.NewParser(used), o.fails}
}

type oddParser struct {
	source.Parser
	fails string
}

func (p *oddParser) Parse(split source.Split, each func(*record.Record)) (records, lines int, err error) {
	n := 0
	records, lines, err = p.Parser.Parse(split, func(rec *record.Record) {
		if n++; n == 2 && p.fails == "record" { // neither the first nor the last
			rec.Bad = &table.Reason{Message: errOdd.Error()}
		}
		each(rec)
	})
	if p.fails == "parse" {
		err = errOdd
	}
	return records, lines, err
}

// oddOrigin has three sources, one of which is an oddSource.
type oddOrigin struct {
	source.Origin
	parts []source.Source
}

func (o *oddOrigin) Open(context.Context, []byte) ([]source.Source, error) {
	if o.parts == nil {
		return nil, errOdd
	}
	return o.parts, nil
}

func TestUnreadableStoredRowsAreAnError(t *testing.T) {
	w := newWorld(t)
	rows := func(from int64) *sourcetest.Wide {
		wide := &sourcetest.Wide{Rows: sourcetest.Rows{Name: fmt.Sprint("part ", from), Columns: []string{"id"}}}
		for i := range int64(4) {
			wide.Append(record.Datum{Kind: record.Integer, Int: from + i}, cellOf("c", "v", -1))
		}
		return wide
	}
	for _, fails := range []string{"", "order", "open", "next", "prepare", "add", "finish", "close", "record", "parse"} {
		for odd := range 3 {
			all := rows(0)
			origin := &oddOrigin{Origin: all}
			for part := range 3 {
				p := &oddSource{Source: rows(int64(10 * part))}
				if part > 0 {
					all.Append(record.Datum{Kind: record.Integer, Int: int64(10 * part)}, cellOf("c", "v", -1))
				}
				if part == odd {
					p.fails = fails
					if fails == "order" && odd > 0 {
						p.Source = rows(int64(10*part - 7))
					}
				}
				origin.parts = append(origin.parts, p)
			}
			if fails == "open" {
				origin.parts = nil
			}
			name, cfg := w.makeWide(t, all, 1)
			cfg.Stored = &Stored{Table: conformance.Try(w.Admin.Describe(name)).Must(t), Rows: origin}
			r, err := Run(t.Context(), cfg)
			switch {
			case fails == "" || fails == "order" && odd == 0:
				conformance.True(t, err == nil && r.Equal == 6 && r.Extra == 6 && r.RowsInTable == 12, "%+v, %v", r, err)
			case err == nil || !strings.Contains(err.Error(), errOdd.Error()) &&
				!strings.Contains(err.Error(), "not in key order"):
				t.Errorf("part %d fails in %s: %+v, %v", odd, fails, r, err)
			}
		}
	}
	for _, v := range []table.Value{{Type: table.Boolean, Int: 1}, {Type: table.Double, Double: 1}} {
		conformance.Equal(t, delivered(new(record.Of(v))), client.SDKValue(v), "value of an archive")
	}
}

// ranged is a source of three ranges of ten keys each.
type ranged struct{ source.Origin }

func (ranged) RangeOf(first int64) (int, bool) { return int(first / 10), first >= 0 && first < 30 }

func TestResultsAreCountedByRange(t *testing.T) {
	taken := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	loaded := []source.Snapshot{{Name: "s", Taken: taken, Ranges: []string{"r0 from 0", "r1 from 10", "r2 from 20"}}}
	const moved = "the source or the table has changed in "
	for what, c := range map[string]struct {
		found   map[int][]verdict
		surplus []int64
		notes   []string
	}{
		"nothing": {map[int][]verdict{0: {isEqual}, 1: {isEqual, isExpired}}, nil,
			[]string{"source and table are equal, in each of the 3 ranges of the run"}},
		"the first": {map[int][]verdict{0: {isMissing, isEqual}}, nil,
			[]string{moved + "1 of the 3", "r0 from 0: 1 missing, 0 different, 0 surplus; the run read it in the snapshot of " +
				"2026-01-02T03:04:05Z"}},
		"the second and the last": {map[int][]verdict{1: {isDifferent, isDifferent}}, []int64{25},
			[]string{moved + "2 of the 3", "r1 from 10: 0 missing, 2 different, 0 surplus",
				"r2 from 20: 0 missing, 0 different, 1 surplus"}},
		"a surplus row": {nil, []int64{31}, []string{"the ranges of 1 surplus rows are unknown"}},
	} {
		v := &verifier{plan: &plan.Plan{Request: &plan.Request{}}, cfg: &Config{Snapshots: loaded}, result: &Result{},
			recordsOf: []int64{1, 2, 3}}
		v.result.Snapshots = loaded
		v.bySource = &bySource{of: ranged{}, found: make([]Counts, 3)}
		for i := range 3 {
			v.plan.Sources = append(v.plan.Sources, &plan.Source{Name: fmt.Sprint("r", i)})
		}
		of := &tally{v: v, table: &target{Table: &client.Table{}}, found: map[int]*Counts{}}
		for n, verdicts := range c.found {
			for _, verdict := range verdicts {
				of.foundOf(n).judged(verdict)
			}
		}
		for _, key := range c.surplus {
			of.table.Key = []table.KeyColumn{{Name: "id", Type: table.Integer}}
			of.extra(table.AppendKey(nil, table.Value{Type: table.Integer, Int: key}))
		}
		v.add([]*tally{of})
		v.noteRanges()
		if of.err != nil || v.result.Extra != int64(len(c.surplus)) || len(v.result.Notes) != len(c.notes) {
			t.Errorf("%s: %+v, %v", what, v.result, of.err)
			continue
		}
		for i, note := range c.notes {
			conformance.True(t, strings.HasPrefix(v.result.Notes[i], note), "%s: %q, want %q", what, v.result.Notes[i], note)
		}
		for i, r := range v.result.SourceRanges {
			conformance.True(t, r.Read == int64(i+1) && r.Range == loaded[0].Ranges[i] && len(r.Loaded) == 1 &&
				r.Equal+r.Missing+r.Different+r.Expired == int64(len(c.found[i])), "%s: %+v", what, r)
		}
	}
}

func TestDuplicateHashesAreFound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 8))
	for n := range 90 {
		rows := []int{n, 50 * n}[n%2]
		mask := []uint64{1<<64 - 1, 1<<56 - 1, 0xff<<56 | 1<<20 - 1}[n%3] // the last ones collide in the hash table
		seen := map[uint64]bool{0: true}
		d := newDistinct(8 * int64(max(rows, 1)))
		d.expect(int64(rows / 2))
		for len(seen) <= rows {
			if h := rnd.Uint64() & mask; !seen[h] {
				seen[h] = true
				d.add(h)
			}
		}
		if n%5 == 0 && rows > 1 {
			d.hashes[rnd.IntN(rows/2)] = d.hashes[rows/2+rnd.IntN(rows-rows/2)]
			conformance.MustEqual(t, d.all(int64(rows)), false, "%d hashes, one of them twice, are all different", rows)
		} else if !d.all(int64(rows)) {
			t.Fatalf("%d different hashes are not", rows)
		}
	}
	d := newDistinct(8 * 3)
	for h := range uint64(4) {
		d.add(h + 1)
	}
	conformance.True(t, !d.all(4) && !d.all(3), "more hashes than memory has room for say something")
	d = newDistinct(64)
	d.add(0)
	conformance.Equal(t, d.all(1), false, "a hash of zero, which the table cannot have, says something")
}

// Rows are compared by their sums, and by cell only if the sums differ. Both must give the same verdict.
func TestRawRowsAreJudgedLikeTheirCells(t *testing.T) {
	text := func(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }
	bin := func(s string) table.Value { return table.Value{Type: table.Binary, Bytes: []byte(s)} }
	double := func(d float64) table.Value { return table.Value{Type: table.Double, Double: d} }
	values := []table.Value{{Type: table.Integer}, {Type: table.Integer, Int: 1}, {Type: table.Integer, Int: -1},
		{Type: table.Boolean}, {Type: table.Boolean, Int: 1}, double(0), double(math.Copysign(0, -1)), double(1),
		double(math.NaN()), double(math.Float64frombits(0x7ff8000000000002)), double(math.Inf(1)), text(""), text("1"),
		text("0"), text("1.0"), text("true"), text("NaN"), text("a\x00"), text("é"), text("e\u0301"), bin(""), bin("1"),
		bin("0"), bin("é")}
	names := []string{"a", "b", "ab", "A", "é"}
	prepared := map[string]*plainbuffer.Name{}
	for _, n := range append(names, "id") {
		p := plainbuffer.NewName(n)
		prepared[n] = &p
	}
	type column struct {
		name  string
		value table.Value
	}
	encode := func(columns []column, at func() int64) []byte {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(prepared["id"], table.Value{Type: table.Integer, Int: 7})
		for _, c := range columns {
			if ms := at(); ms < 0 {
				r.Cell(prepared[c.name], c.value)
			} else {
				r.CellAt(prepared[c.name], c.value, ms)
			}
		}
		return r.End()
	}
	none := func() int64 { return -1 }
	r := rand.New(rand.NewPCG(1, 2))
	h := plainbuffer.NewHasher()
	reduce := &reducer{Hasher: h, mode: table.Put}
	j := &judge{Hasher: h, mode: table.Put, sums: true, names: map[uint64]string{}, oldest: -1, loaded: -1,
		hashes: map[string]uint64{}, got: map[uint64][]got{}}
	w := wants{mode: table.Put}
	var memory client.PageMemory
	equal, different := 0, 0
	for range 6000 {
		var in []column
		for _, n := range names {
			if r.IntN(4) > 0 {
				in = append(in, column{n, values[r.IntN(len(values))]})
			}
		}
		out := slices.Clone(in)
		r.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
		switch r.IntN(4) {
		case 0:
			if len(out) > 0 {
				out[0].value = values[r.IntN(len(values))]
			}
		case 1:
			if len(out) > 1 {
				out[0].value, out[1].value = out[1].value, out[0].value
			}
		case 2:
			if len(out) > 0 {
				out = out[1:]
			}
		}
		kept, err := reduce.reduce(1, encode(in, none))
		conformance.MustTrue(t, err == nil && kept[headBytes-1] == kindWhole, "%v, kind %c", err, kept[headBytes-1])
		want := want{rows: 1}
		w.take(&want, kept)
		body := encode(out, func() int64 { return r.Int64() })
		row := conformance.Try(memory.Unpack(plainbuffer.WithoutHeader(body))).Must(t)
		sum, _ := h.Row(plainbuffer.CellsOf(body))
		same := j.same(&want, sum)
		verdict, _ := j.compare(&want, row)
		// Rows are equal if they have the same columns, with values of the same type and the same bits.
		byName := func(a, b column) int { return slices.Index(names, a.name) - slices.Index(names, b.name) }
		slices.SortFunc(out, byName)
		meant := slices.EqualFunc(in, out, func(a, b column) bool {
			return a.name == b.name && a.value.Type == b.value.Type && a.value.Int == b.value.Int &&
				math.Float64bits(a.value.Double) == math.Float64bits(b.value.Double) &&
				string(a.value.Bytes) == string(b.value.Bytes)
		})
		conformance.MustTrue(t, same == meant && (verdict == isEqual) == meant,
			"by bytes %v, by cells %v, want %v:\n%+v\n%+v", same, verdict == isEqual, meant, in, out)
		if meant {
			equal++
		} else {
			different++
		}
	}
	conformance.True(t, equal >= 500 && different >= 500, "%d rows were equal and %d different", equal, different)
}
