package copytable

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/tablescan"
)

func made(at int64) *client.Table { return &client.Table{Created: at} }

func TestTableIsNotCopiedIntoItself(t *testing.T) {
	from := Side{Endpoint: "a", Instance: "i", Name: "t", Table: made(1)}
	for _, c := range []struct {
		to   Side
		want string
	}{
		{Side{Endpoint: "a", Instance: "i", Name: "u", Table: made(1)}, ""},
		{Side{Endpoint: "a", Instance: "j", Name: "t", Table: made(1)}, ""},
		{Side{Endpoint: "a", Instance: "i", Name: "t", Table: made(2)}, "the same table"},
		{Side{Endpoint: "b", Instance: "i", Name: "t", Table: made(1)}, "seem to be the same table"},
		{Side{Endpoint: "b", Instance: "i", Name: "t", Table: made(0)}, "seem to be the same table"},
		{Side{Endpoint: "b", Instance: "i", Name: "t", Table: made(2)}, ""},
		{Side{Endpoint: "b", Instance: "i", Name: "t"}, ""},
	} {
		err := Distinct(from, c.to)
		conformance.True(t, (err == nil) == (c.want == "") && strings.Contains(fmt.Sprint(err), c.want), "%+v: %v", c.to, err)
	}
}

func TestNewTableIsDefinedLikeItsSource(t *testing.T) {
	from := &client.Table{Key: []table.KeyColumn{{Name: "id", Type: table.Integer}, {Name: "s", Type: table.String}}}
	from.TimeToLive, from.MaxVersions, from.ReservedRead, from.MaxDeviation = 86400, 3, 5, 60
	from.Defined = map[string]table.Type{"old": table.Integer, "left": table.String, "set": table.Double}

	var to plan.Target
	columns := plan.Columns{Exclude: []string{"left"}, Rename: map[string]string{"old": "new"},
		Set: []plan.Column{{Name: "set"}}}
	notes := Define(&to, &columns, from, func(flag string) bool { return flag == "ttl" })
	conformance.True(t, len(to.Key) == 2 && to.Key[0] == from.Key[0] && to.Key[1] == from.Key[1], "key %+v", to.Key)
	if d := to.Define; d.TimeToLive != 0 || d.MaxVersions != 3 || d.ReservedRead != 5 || d.MaxDeviation != table.AnyAge {
		t.Errorf("options %+v", d)
	}
	conformance.True(t, len(to.Defined) == 1 && to.Defined["new"] == table.Integer, "defined columns %v", to.Defined)
	conformance.True(t, len(notes) == 1 && strings.Contains(notes[0], "the source has 60"), "notes %q", notes)

	to = plan.Target{Key: []table.KeyColumn{{Name: "hash"}, {Name: "key"}}}
	columns = plan.Columns{Keys: []plan.Column{{Name: "hash"}}, Rename: map[string]string{"s": "key"}}
	Define(&to, &columns, from, func(string) bool { return true })
	conformance.True(t, to.Key[0].Type == table.Null && to.Key[1].Type == table.String, "key %+v", to.Key)
	to.Key[0].Auto = true
	conformance.Refused(t, CheckKey("t", to.Key, "ots://a/s", "give it up"), "column hash", "error")
}

func TestNewTableGetsTheIndexesOfItsSource(t *testing.T) {
	from := &client.Table{Name: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}},
		Indexes: []string{"by_city", "by_time", "old"},
		IndexesAre: []table.Index{{Name: "by_city", Key: []string{"city", "id"}, Columns: []string{"name", "age"}},
			{Name: "by_time", Local: true, Key: []string{"id", "time"}}},
		Defined: map[string]table.Type{"city": table.String, "time": table.Integer, "name": table.String,
			"age": table.Integer}}
	from.TimeToLive, from.MaxVersions = -1, 1
	define := func(columns plan.Columns, key []table.KeyColumn, rename map[string]string) ([]table.Index, string, error) {
		to := plan.Target{Key: key}
		Define(&to, &columns, from, func(string) bool { return false })
		notes, err := DefineIndexes(&to, &columns, from, rename)
		return to.Indexes, strings.Join(notes, "\n"), err
	}
	city, byTime := from.IndexesAre[0], from.IndexesAre[1]
	for name, c := range map[string]struct {
		columns plan.Columns
		key     []table.KeyColumn
		rename  map[string]string
		want    []table.Index
		says    string
	}{
		"all": {want: []table.Index{city, byTime},
			says: "gets the local index by_time with the key id, time when all rows are written"},
		"by name": {want: []table.Index{city, byTime},
			says: "does not get the index old, because the archive has only its name"},
		"renamed": {columns: plan.Columns{Rename: map[string]string{"city": "town", "age": "years"}},
			rename: map[string]string{"by_city": "by_town"},
			want:   []table.Index{{Name: "by_town", Key: []string{"town", "id"}, Columns: []string{"name", "years"}}, byTime}},
		"without a column": {columns: plan.Columns{Exclude: []string{"name"}}, want: []table.Index{byTime},
			says: "lacks columns of the index: name"},
		"without its own key": {columns: plan.Columns{Exclude: []string{"city"}}, want: []table.Index{byTime},
			says: "lacks the predefined column city"},
		"another key": {key: []table.KeyColumn{{Name: "hash", Type: table.String}},
			want: []table.Index{{Name: "by_city", Key: []string{"city"}, Columns: []string{"name", "age"}}},
			says: "does not get the local index by_time"},
	} {
		got, notes, err := define(c.columns, c.key, c.rename)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" || !strings.Contains(notes, c.says) {
			t.Errorf("%s: %v %s\n%s", name, err, diff, notes)
		}
	}
	_, _, err := define(plan.Columns{}, nil, map[string]string{"no": "yes"})
	conformance.True(t, err != nil, "an index that is not there was renamed")
	from.MaxVersions = 2
	_, _, err = define(plan.Columns{}, nil, nil)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "tsimport table create"), "%v", err)
}

func TestOldestAcceptedTimestamp(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		ttl       int
		deviation int64
		want      int64 // seconds before now
	}{{-1, 0, client.DefaultDeviation}, {-1, 500, 500}, {300, 500, 300}, {900, 500, 500}, {-1, 2_000_000, 1_000_000}} {
		got := now.Unix() - Oldest(&table.Definition{TimeToLive: c.ttl, MaxDeviation: c.deviation}, now).Unix()
		conformance.True(t, got == c.want, "%+v: %d", c, got)
	}
	for _, c := range []struct {
		from, to  int // times to live
		deviation int64
		want      bool
	}{{-1, -1, 0, false}, {100, -1, 100, true}, {100, -1, 99, false}, {100, 100, 500, true}, {100, 99, 500, false}} {
		from := &client.Table{}
		from.TimeToLive = c.from
		conformance.Equal(t, Expires(from, &table.Definition{TimeToLive: c.to, MaxDeviation: c.deviation}), c.want, "%+v", c)
	}
}

func TestTargetThatWouldDropVersionsIsRefused(t *testing.T) {
	for _, c := range []struct {
		source, target, versions int
		want                     string // part of the message; "" means no error
	}{{1, 1, 0, ""}, {0, 0, 0, ""}, {3, 3, 0, ""}, {3, 5, 0, ""}, {1, 0, 0, ""}, {3, 1, 0, "--versions 1"},
		{3, 0, 0, "keeps 1 versions of a cell, and ots://a/s up to 3"}, {5, 3, 0, "--max-versions 5"}, {5, 3, 4, "up to 4"},
		{5, 3, 3, ""}, {5, 1, 1, ""}, {3, 3, 9, ""}} {
		from := &client.Table{}
		from.MaxVersions = c.source
		err := KeepsVersions("t", &table.Definition{MaxVersions: c.target}, "ots://a/s", from, c.versions)
		conformance.True(t, (err == nil) == (c.want == "") && strings.Contains(fmt.Sprint(err), c.want), "%+v: %v", c, err)
	}
}

func TestCutsOutsideARangeAreIgnored(t *testing.T) {
	key := func(n ...int64) (k []table.Value) {
		for _, n := range n {
			k = append(k, table.Value{Type: table.Integer, Int: n})
		}
		return k
	}
	for _, c := range []struct{ from, to, want []table.Value }{{nil, nil, key(1, 5, 9)}, {key(1), nil, key(5, 9)},
		{nil, key(9), key(1, 5)}, {key(2), key(3), nil}, {key(0), key(6), key(1, 5)}, {key(10), nil, nil}} {
		var got []table.Value
		for _, cut := range between([][]table.Value{key(1), key(5), key(9)}, c.from, c.to) {
			got = append(got, cut...)
		}
		conformance.Equal(t, reflect.DeepEqual(got, c.want), true, "from %v to %v: %v", c.from, c.to, got)
	}
}

// TestUnacceptableCellIsFoundAnywhere puts a cell with a bad timestamp into the first, a middle and the last row.
func TestUnacceptableCellIsFoundAnywhere(t *testing.T) {
	const rows = 40
	s := tabletest.Open(t, server.Options{})
	key := []table.KeyColumn{{Name: "id", Type: table.Integer}}
	now := s.Now()
	old, ahead := now.Add(-50*time.Hour).UnixMilli(), now.Add(50*time.Hour).UnixMilli()
	others := conformance.Try(keyexpr.CompileWhere("id != 20")).Must(t)
	day := &table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 86400}
	for i, tt := range []struct {
		bad  int // the row with the cell, or -1
		at   int64
		to   *table.Definition
		scan func(*tablescan.Config)
		o    func(*Options)
		want string // part of the message; "" means no error
	}{{bad: 0, at: old, want: "column odd of row id 0 is"}, {bad: 20, at: old, want: "column odd of row id 20 is"},
		{bad: rows - 1, at: old, want: "column odd of row id 39 is"},
		{bad: 20, at: ahead, want: "column odd of row id 20 is"}, {bad: -1},
		{bad: 20, at: old, to: &table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1e6}},
		{bad: 20, at: old, o: func(o *Options) { o.DropExpired = true }},
		{bad: 20, at: old, o: func(o *Options) { o.Takes = func(column string) bool { return column != "odd" } }},
		{bad: 20, at: old, scan: func(c *tablescan.Config) { c.Where = others }},
		{bad: 21, at: old, scan: func(c *tablescan.Config) { c.Where = others }, want: "column odd of row id 21 is"}} {
		name := fmt.Sprint("t", i)
		conformance.Must(t, s.Admin.Create(name, key, table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1e9}))
		tabletest.Fill(t, s.SDK, rows, func(id int) tablestore.RowChange {
			change := tabletest.Put(name, tabletest.Key("id", int64(id)), tabletest.Cells{"even": int64(id)}, now.UnixMilli())
			if id == tt.bad {
				change.AddColumnWithTimestamp("odd", "x", tt.at)
			}
			return change
		})
		from := conformance.Try(s.Admin.Describe(name)).Must(t)
		c, o := tablescan.Config{Client: s.SDK, Table: from, Ranges: 4}, Options{To: day}
		if tt.to != nil {
			o.To = tt.to
		}
		if tt.scan != nil {
			tt.scan(&c)
		}
		if tt.o != nil {
			tt.o(&o)
		}
		err := New(c, o).Refuse(t.Context())
		conformance.True(t, (err == nil) == (tt.want == "") && strings.Contains(fmt.Sprint(err), tt.want), "%d: %v, %q", i,
			err, tt.want)
	}
}

// TestUnansweredLookForUnacceptableCellsIsAnError fails each request once. Without split points, ranges are less even.
func TestUnansweredLookForUnacceptableCellsIsAnError(t *testing.T) {
	f := &faults.Plan{}
	s := tabletest.Open(t, server.Options{Faults: f})
	conformance.Must(t, s.Admin.Create("t", []table.KeyColumn{{Name: "id", Type: table.Integer}},
		table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1e9}))
	old := s.Now().Add(-50 * time.Hour).UnixMilli()
	conformance.Must(t, tabletest.Do(s.SDK, tabletest.Put("t", tabletest.Key("id", int64(20)), tabletest.Cells{"odd": "x"},
		old)))
	c := tablescan.Config{Client: s.SDK, Table: conformance.Try(s.Admin.Describe("t")).Must(t), Ranges: 4,
		Where: conformance.Try(keyexpr.CompileWhere("id != 20")).Must(t)}
	refuse := New(c, Options{To: &table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 86400}}).Refuse
	for at := 0; ; at++ {
		n, failed := 0, ""
		f.Change(func(of string) bool { return of != "ComputeSplitPointsBySize" }, func(r faults.Request) faults.Fault {
			if n++; n == at+1 {
				failed = r.Operation
				return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}
			}
			return faults.Fault{}
		})
		err := refuse(t.Context())
		if failed == "" {
			conformance.True(t, err == nil && n >= 2, "%d requests, %v", n, err)
			return
		}
		conformance.True(t, err != nil && strings.Contains(err.Error(), "OTSAuthFailed"), "request %d, a %s, fails: %v", at,
			failed, err)
	}
}
