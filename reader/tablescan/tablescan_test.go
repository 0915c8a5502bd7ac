package tablescan

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

// world is a service with a table t.
type world struct {
	*testing.T
	*tabletest.Store
	plan *faults.Plan
	now  time.Time
}

var key = []table.KeyColumn{{Name: "id", Type: table.Integer}, {Name: "name", Type: table.String},
	{Name: "raw", Type: table.Binary}}

func newWorld(t *testing.T) *world {
	w := &world{T: t, plan: new(faults.Plan), now: time.Now()}
	w.Store = tabletest.Open(t, server.Options{Faults: w.plan})
	w.create()
	return w
}

func (w *world) create() {
	w.Helper()
	conformance.Must(w, w.Admin.Create("t", key, table.Definition{TimeToLive: -1, MaxVersions: 5}))
}

func (w *world) key(i int) *tablestore.PrimaryKey {
	return tabletest.Key("id", int64(i/3-100), "name", fmt.Sprint("name ", i%3), "raw", bytes.Repeat([]byte{0}, i%5))
}

// fill writes rows 0 to n−1. They have cells of all types and several versions; some have no cells.
func (w *world) fill(n int) {
	w.Helper()
	tabletest.Fill(w, w.SDK, n, func(i int) tablestore.RowChange {
		change := tabletest.Put("t", w.key(i), nil)
		if i%11 != 10 {
			change.AddColumn("always", fmt.Sprint("row ", i))
			change.AddColumn(fmt.Sprint("c", i%7), []any{int64(math.MinInt64), math.MaxFloat64, true, "", []byte{}, "表 \x00",
				math.Copysign(0, -1)}[i%7])
			for v := range i % 4 {
				change.AddColumnWithTimestamp("versions", int64(v), w.now.UnixMilli()-int64(1000*v))
			}
		}
		return change
	})
}

func (w *world) config() Config {
	w.Helper()
	return Config{Client: w.SDK, Table: conformance.Try(w.Admin.Describe("t")).Must(w)}
}

// parts opens the ranges between these bounds of the first key column.
func (w *world) parts(c Config, bounds ...int64) []source.Source {
	w.Helper()
	o := New(c)
	kept := conformance.Try(o.Divide(w.Context())).Must(w)
	if len(bounds) > 0 {
		kept = w.division(c, bounds...)
	}
	return conformance.Try(o.Open(w.Context(), kept)).Must(w)
}

func (w *world) division(c Config, bounds ...int64) []byte {
	text := fmt.Appendf(nil,
		`{"Table":"t","Created":%d,"Key":[{"Name":"id","Type":%d},{"Name":"name","Type":%d},{"Name":"raw","Type":%d}],"Bounds":[`,
		c.Table.Created, table.Integer, table.String, table.Binary)
	for i, b := range bounds {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "%q", base64.StdEncoding.EncodeToString(appendPlace(nil,
			[]table.Value{{Type: table.Integer, Int: b}})))
	}
	return append(text, "]}"...)
}

// read reads a source. It returns the keys and the number of cells.
func read(s source.Source) (keys []string, cells int, err error) {
	p := s.NewParser(nil)
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			return keys, cells, nil
		}
		if err == nil {
			err = piece.Prepare()
		}
		if err != nil {
			return keys, cells, err
		}
		splits, err := s.Add(piece)
		if err != nil {
			return keys, cells, err
		}
		for _, sp := range splits {
			if _, _, err := p.Parse(sp, func(rec *record.Record) {
				keys = append(keys, fmt.Sprintf("%d %s %x", rec.Fields[0].Int, rec.Fields[1].Bytes, rec.Fields[2].Bytes))
				cells += len(rec.Cells)
			}); err != nil {
				return keys, cells, err
			}
		}
	}
}

func TestTableKeepsSourceContract(t *testing.T) {
	w := newWorld(t)
	w.fill(700)
	c := w.config()
	for name, bounds := range map[string][]int64{"in one range": nil, "a range in the middle": {-60, 20}} {
		t.Run(name, func(t *testing.T) {
			sourcetest.Check(t, func() source.Source {
				parts := w.parts(c, bounds...)
				p := parts[len(parts)/2].(*part)
				p.bytes = 3000 // otherwise all rows are in one page
				return p
			})
		})
	}
}

func TestRangesContainEveryRowOnce(t *testing.T) {
	w := newWorld(t)
	w.fill(900)
	whole, cells, err := read(w.parts(w.config())[0])
	conformance.MustTrue(t, err == nil && len(whole) == 900, "%d rows: %v", len(whole), err)
	var all []string
	sum := 0
	for _, s := range w.parts(w.config(), -100, -50, 0, 199, 5000) {
		keys, n, err := read(s)
		conformance.Must(t, err)
		all, sum = append(all, keys...), sum+n
	}
	conformance.True(t, slices.Equal(all, whole) && sum == cells, "%d rows, %d of %d cells", len(all), sum, cells)
}

func TestRangeFilterAndConditionSelectRows(t *testing.T) {
	w := newWorld(t)
	w.fill(900)
	where := conformance.Try(keyexpr.CompileWhere(`name == "name 1" and versions >= 0`)).Must(t)
	integer := func(n int64) []table.Value { return []table.Value{{Type: table.Integer, Int: n}} }
	filter := tablestore.NewSingleColumnCondition("versions", tablestore.CT_GREATER_EQUAL, int64(0))
	filter.FilterIfMissing = true
	for name, tt := range map[string]struct {
		change func(*Config)
		want   func(i int) bool
	}{
		"from and to": {func(c *Config) { c.From, c.To = integer(-50), integer(10) },
			func(i int) bool { return i/3-100 >= -50 && i/3-100 < 10 }},
		"where":  {func(c *Config) { c.Where = where }, func(i int) bool { return i%3 == 1 && i%11 != 10 && i%4 > 0 }},
		"filter": {func(c *Config) { c.Filter = filter }, func(i int) bool { return i%11 != 10 && i%4 > 0 }},
		"filter by a column that is not asked for": {
			func(c *Config) { c.Filter, c.FilterUses, c.Columns = filter, []string{"versions"}, []string{"always"} },
			func(i int) bool { return i%11 != 10 && i%4 > 0 }},
		"since the last": {func(c *Config) { c.Since = w.now.UnixMilli() - 1000 }, func(i int) bool { return i%11 != 10 }},
		"since tomorrow": {func(c *Config) { c.Since = w.now.UnixMilli() + 86_400_000 }, func(int) bool { return false }},
		"columns":        {func(c *Config) { c.Columns = []string{"always"} }, func(int) bool { return true }},
	} {
		c := w.config()
		tt.change(&c)
		var want []string
		for i := range 900 {
			if tt.want(i) {
				k := KeyOf(&scan.Row{PrimaryKey: w.key(i)})
				want = append(want, fmt.Sprintf("%d %s %x", k[0].Int, k[1].Bytes, k[2].Bytes))
			}
		}
		var got []string
		left := int64(0)
		for _, s := range w.parts(c) {
			if _, err := s.Sample(1000, nil, func(*record.Record) {}); err != nil {
				t.Fatal(name, err)
			}
			keys, _, err := read(s)
			conformance.MustTrue(t, err == nil, "%v %v", name, err)
			got = append(got, keys...)
			left = s.(*part).of.LeftOut()
		}
		conformance.True(t, (c.Where == nil || left == int64(900-len(want))) && (c.Where != nil || left == 0),
			"%s: %d rows are said to be left out, want %d", name, left, 900-len(want))
		slices.Sort(got)
		slices.Sort(want)
		conformance.Equal(t, slices.Equal(got, want), true, "%s: %d rows, want %d", name, len(got), len(want))
	}
}

func (w *world) drop() {
	w.Helper()
	conformance.Must(w, w.Admin.Drop("t"))
}

func TestDroppingTableStopsReading(t *testing.T) {
	for name, again := range map[string]bool{"dropped": false, "dropped and made again": true} {
		w := newWorld(t)
		w.fill(600)
		s := w.parts(w.config())[0].(*part)
		s.bytes = 3000
		conformance.Must(t, conformance.ErrorOf(s.Next()))
		w.drop()
		if again {
			w.create()
			w.fill(300)
		}
		_, _, err := read(s)
		replaced := new(client.ReplacedError)
		conformance.True(t, errors.As(err, &replaced) && !strings.Contains(err.Error(), "\n"), "%s: %v", name, err)
	}
}

func TestReplacedTableIsNotResumed(t *testing.T) {
	w := newWorld(t)
	w.fill(10)
	kept := w.division(w.config())
	w.drop()
	w.create()
	_, err := New(w.config()).Open(t.Context(), kept)
	conformance.Refused(t, err, "dropped and created again", "error")
	conformance.Refused(t, conformance.ErrorOf(New(w.config()).Open(t.Context(), []byte("{"))), "",
		"a division that is cut was opened")
}

func TestPositionIsBeforeReading(t *testing.T) {
	w := newWorld(t)
	traffic := new(client.Traffic)
	sdk := conformance.Try(client.New(t.Context(), w.Target, traffic)).Must(t)
	c := w.config()
	c.Client = sdk
	o := New(c)
	position := func(of *Origin, kept []byte) source.Position {
		conformance.Must(t, conformance.ErrorOf(of.Open(t.Context(), kept)))
		return of.Position()
	}
	kept := conformance.Try(o.Divide(t.Context())).Must(t)
	if p := position(o, kept); p.ResumeFrom != nil {
		t.Errorf("without a clock: %s", p.Follow())
	}
	o.Clock = &traffic.Clock
	before := time.Now()
	kept = conformance.Try(o.Divide(t.Context())).Must(t)
	p := position(o, kept)
	// The date in a response may be in whole seconds.
	if at := p.ResumeFrom.Time.Add(source.Lead); at.After(time.Now()) || before.Sub(at) > 3*time.Second {
		t.Errorf("%v, and it began between %v and now", at, before)
	}
	conformance.Equal(t, position(New(c), kept).Follow(), p.Follow(), "in a process that resumes")
	o.Clock = new(client.Clock) // a clock that no response has set
	kept = conformance.Try(o.Divide(t.Context())).Must(t)
	conformance.Equal(t, position(o, kept).Follow(),
		"to follow the source from here: resume_from unknown: answers of the service have no date", "")
}

func TestTemporaryReadFaultsAreRetried(t *testing.T) {
	w := newWorld(t)
	w.fill(900)
	codes := []string{"OTSServerBusy", "OTSNotEnoughCapacityUnit", "OTSPartitionUnavailable", "OTSTimeout"}
	w.plan.Change(func(op string) bool { return op == "GetRange" }, func(r faults.Request) faults.Fault {
		if r.N%3 == 0 {
			return faults.Fault{}
		}
		return faults.Fault{Action: faults.Refuse, Code: codes[r.N%len(codes)]}
	})
	s := w.parts(w.config())[0].(*part)
	s.bytes = 20_000
	keys, _, err := read(s)
	conformance.True(t, err == nil && len(keys) == 900 && len(slices.Compact(keys)) == 900, "%d rows: %v", len(keys), err)
}

func TestPlaceOfLongestKeyFits(t *testing.T) {
	long := []table.Value{{Type: table.Binary, Bytes: make([]byte, 1024)}, {Type: table.String, Bytes: make([]byte, 1024)},
		{Type: table.Integer, Int: math.MinInt64}, {Type: table.Binary, Bytes: make([]byte, 1024)}}
	place := appendPlace(nil, long)
	conformance.True(t, len(place) <= source.MaxKey, "%d bytes", len(place))
	back, err := placeValues(place)
	conformance.True(t, err == nil && len(back) == 4 && back[2].Int == math.MinInt64 && len(back[3].Bytes) == 1024,
		"%v, %v", back, err)
	for cut := range len(place) - 1 {
		v, err := placeValues(place[:cut+1])
		conformance.MustTrue(t, err != nil || len(v) != 4, "the first %d bytes are a whole key", cut+1)
	}
	if text := showPlace(key, appendPlace(nil, []table.Value{{Type: table.Integer, Int: 5},
		{Type: table.String, Bytes: []byte("a")}})); text != `id 5, name "a"` {
		t.Error(text)
	}
}

// TestReusedPagesHaveSameRecords compares records with the SDK's rows. Facts about a split must remain valid, too.
func TestReusedPagesHaveSameRecords(t *testing.T) {
	w := newWorld(t)
	const rows = 3000
	w.fill(rows)
	var want []string
	records := NewRecords(len(key))
	err := scan.Table(t.Context(), w.SDK, "t", key, scan.Options{Versions: AllVersions}, func(r *scan.Row) error {
		row, err := client.PackRow(plainbuffer.Names{}, r)
		want = append(want, show(records.Of(row)))
		return err
	})
	conformance.Must(t, err)
	s := w.parts(w.config())[0]
	s.SetSplitBytes(20 << 10)
	parser := s.NewParser(nil)
	var got, known []string
	var splits []source.Split
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		conformance.Must(t, err)
		made, err := s.Add(piece)
		conformance.MustTrue(t, err == nil && len(made) == 1, "%d splits, %v", len(made), err)
		sp := made[0]
		splits, known = append(splits, sp), append(known, string(sp.Key))
		_, _, err = parser.Parse(sp, func(rec *record.Record) { got = append(got, show(rec)) })
		conformance.Must(t, err)
		s.About().GiveBack(sp)
	}
	conformance.MustTrue(t, len(splits) >= 5 && len(got) == rows, "%d splits with %d rows", len(splits), len(got))
	for i := range want {
		conformance.MustEqual(t, got[i], want[i], "record %d", i)
	}
	for i, sp := range splits {
		conformance.Equal(t, string(sp.Key), known[i], "split %d", i)
	}
}

func show(r *record.Record) string {
	text := fmt.Sprint(r.Fields)
	for _, c := range r.Cells {
		text += fmt.Sprintf(" %s@%d %+v", c.Name, c.At, c.Datum)
	}
	return text
}
