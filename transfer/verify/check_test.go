package verify

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
)

// checkOf checks a CSV text under a key of one string column.
func checkOf(t fatal, dir, text string, key keyexpr.Column) CheckConfig {
	t.Helper()
	path := filepath.Join(dir, "in.csv")
	conformance.Must(t, os.WriteFile(path, []byte(text), 0o644))
	r := &plan.Request{Inputs: []string{path}, Columns: plan.Columns{Types: map[string]plan.Type{}}}
	r.Target = plan.Target{Table: "check", Create: true, Absent: true,
		Key: []table.KeyColumn{{Name: key.Name, Type: key.Type}}}
	if key.Expr != "" {
		r.Columns.Keys = []keyexpr.Column{key}
	}
	return CheckConfig{Request: r, Unique: true, Examples: 3, Memory: 1 << 30, TempDir: dir}
}

func TestCollisionsAreCountedExactly(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		text := "a,b\n"
		sources := map[string]map[string]bool{} // by key, what it is made of
		first := map[string]string{}
		var repeated, colliding int64
		records := rapid.IntRange(0, 60).Draw(rt, "records")
		for range records {
			a := rapid.SampledFrom([]string{"x1", "x2", "y1", "y2", "z"}).Draw(rt, "a")
			b := rapid.SampledFrom([]string{"", "p", "q"}).Draw(rt, "b")
			text += a + "," + b + "\n"
			key, source := a[:1], a
			if sources[key] == nil {
				sources[key], first[key] = map[string]bool{}, source
			} else if first[key] == source {
				repeated++
			} else {
				colliding++
			}
			sources[key][source] = true
		}
		collisions := int64(0)
		for _, s := range sources {
			if len(s) > 1 {
				collisions++
			}
		}
		cfg := checkOf(rt, dir, text, keyexpr.Column{Name: "k", Type: table.String, Expr: "substr(a, 1, 1)"})
		cfg.Request.Read.SplitBytes = 32
		cfg.Memory = rapid.SampledFrom([]int64{1, 1 << 30}).Draw(rt, "memory")
		r := conformance.Try(Check(context.Background(), cfg)).Must(rt)
		conformance.MustTrue(rt, r.Keys == int64(len(sources)) && r.Repeated == repeated && r.Collisions == collisions &&
			r.Colliding == colliding && r.Read == int64(records),
			"%d keys, %d repeated, %d collisions, %d colliding; want %d, %d, %d, %d of\n%s", r.Keys, r.Repeated, r.Collisions,
			r.Colliding, len(sources), repeated, collisions, colliding, text)
		conformance.MustTrue(rt, r.OK == (collisions == 0) && int64(len(r.Examples)) == min(collisions, 3),
			"ok %v, examples %v", r.OK, r.Examples)
		lines := strings.Split(text, "\n")
		for _, e := range r.Examples {
			a, b := lines[e.First.Record], lines[e.Other.Record]
			key := string(e.Key[0].Value.Bytes)
			conformance.MustTrue(rt, a[:2] != b[:2] && a[:1] == key && b[:1] == key, "%v: %q and %q do not collide", e.Key, a, b)
		}
	})
}

func TestCheckCountsRejects(t *testing.T) {
	cfg := checkOf(t, t.TempDir(), "k,n\na,1\nb,x\n,3\nd,4,5\ne,y\n", keyexpr.Column{Name: "k", Type: table.String})
	cfg.Request.Columns.Types["n"] = plan.Type{Type: table.Integer}
	for _, unique := range []bool{false, true} {
		cfg.Unique = unique
		r := conformance.Try(Check(context.Background(), cfg)).Must(t)
		var codes []string
		for _, code := range slices.Sorted(maps.Keys(r.Reasons)) {
			codes = append(codes, fmt.Sprint(code, " ", r.Reasons[code]))
		}
		got := strings.Join(codes, ", ")
		conformance.True(t, !r.OK && r.Read == 5 && r.Rejected == 4 && got == "NullKey 1, RaggedRecord 1, WrongType 2",
			"%d read, %d rejected: %s", r.Read, r.Rejected, got)
		conformance.True(t, len(r.Rejects) == 3 && r.Rejects[0].Record == 2 && r.Rejects[0].Column == "n" &&
			r.Rejects[0].Value == "x", "%+v", r.Rejects)
		conformance.True(t, (!unique || r.Keys == 1) && (unique || r.Keys == 0), "%d keys", r.Keys)
	}
}

func TestRepeatsAreCountedByWhetherTheirRowsAreEqual(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		text, line := "k,\"v\nw\"\n", 3
		first := map[string]string{}
		atLine := map[int]string{} // the row that begins there
		var equal, different int64
		for range rapid.IntRange(0, 40).Draw(rt, "records") {
			key := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "key")
			value := rapid.SampledFrom([]string{"", "1", "\"two\nlines\""}).Draw(rt, "value")
			text += key + "," + value + "\n"
			atLine[line] = key + "," + value
			line += 1 + strings.Count(value, "\n")
			switch was, known := first[key]; {
			case !known:
				first[key] = value
			case was == value:
				equal++
			default:
				different++
			}
		}
		cfg := checkOf(rt, dir, text, keyexpr.Column{Name: "k", Type: table.String})
		cfg.Request.Read.SplitBytes = 32
		cfg.Memory = rapid.SampledFrom([]int64{1, 1 << 30}).Draw(rt, "memory")
		r := conformance.Try(Check(context.Background(), cfg)).Must(rt)
		conformance.MustTrue(rt, r.Equal == equal && r.Different == different && r.Repeated == equal+different &&
			r.Keys == int64(len(first)) && r.Collisions == 0 && r.OK,
			"%d equal and %d different of %d, want %d and %d of\n%s", r.Equal, r.Different, r.Repeated, equal, different, text)
		got, want := int64(len(r.Repeats)), min(different, 3)+min(equal, 3-min(different, 3))
		conformance.MustTrue(rt, got == want, "%d examples, want %d", got, want)
		for i, e := range r.Repeats {
			a, b := atLine[int(e.First.Line)], atLine[int(e.Other.Line)]
			conformance.MustTrue(rt, a != "" && b != "" && e.Equal == (a == b) && e.Equal == (int64(i) >= different) &&
				a[:1] == string(e.Key[0].Value.Bytes) && a[:1] == b[:1],
				"example %d says equal %v of line %d, %q, and line %d, %q", i, e.Equal, e.First.Line, a, e.Other.Line, b)
		}
	})
}

func TestAutoIncrementRecordsRepeatNoKey(t *testing.T) {
	cfg := checkOf(t, t.TempDir(), "k,v\na,1\na,2\n", keyexpr.Column{Name: "k", Type: table.String})
	cfg.Request.Target.Key = append(cfg.Request.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
	r, err := Check(context.Background(), cfg)
	conformance.True(t, err == nil && r.OK && !r.Unique && r.Repeated == 0 &&
		strings.Contains(strings.Join(r.Notes, ";"), "a number of its own (n)"), "%+v, %v", r, err)
}

func TestCheckNamesASinglePartitionKey(t *testing.T) {
	var b strings.Builder
	b.WriteString("shop,n\n")
	for i := range 300 {
		fmt.Fprintf(&b, "one,%d\n", i)
	}
	cfg := checkOf(t, t.TempDir(), b.String(), keyexpr.Column{Name: "shop", Type: table.String})
	cfg.Request.Target.Key = append(cfg.Request.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer})
	for _, unique := range []bool{false, true} {
		cfg.Unique = unique
		r, err := Check(context.Background(), cfg)
		conformance.True(t, err == nil && r.OK && len(r.HotKeys) == 1 && r.HotKeys[0] == (HotKey{"shop", "one", 1}),
			"unique %v: %+v, %v", unique, r, err)
	}
}

func TestDelimitersInsideValues(t *testing.T) {
	r, err := Check(context.Background(), checkOf(t, t.TempDir(), "k,s,u\na,\"x,y\",z\na,x,\"y,z\"\n",
		keyexpr.Column{Name: "k", Type: table.String}))
	conformance.True(t, err == nil && r.Repeated == 1 && r.Different == 1, "%+v, %v", r, err)
}

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

func init() {
	// Few draws by default; -rapid.checks sets more.
	conformance.Must(conformance.Sure{}, flag.Set("rapid.checks", "35"))
}

// world is an embedded store in memory, and a folder for inputs.
type world struct {
	*tabletest.Store
	t      testing.TB
	dir    string
	faults *faults.Plan
	tables atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), faults: &faults.Plan{}}
	w.Store = tabletest.Open(t, server.Options{Faults: w.faults})
	return w
}

// fatal is what testing.T and rapid.T have in common.
type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

var stringID = []table.KeyColumn{{Name: "id", Type: table.String}}

func (w *world) make(t fatal, d table.Definition) string {
	t.Helper()
	name := fmt.Sprintf("t%d", w.tables.Add(1))
	if d.TimeToLive == 0 {
		d.TimeToLive = -1
	}
	d.MaxVersions = max(d.MaxVersions, 1)
	must(t, w.Admin.Create(name, stringID, d))
	return name
}

type cells = tabletest.Cells

// put replaces a row; a nil stamp is the store's own time.
func (w *world) put(t fatal, name, id string, c cells, stamp ...int64) {
	t.Helper()
	must(t, tabletest.Do(w.SDK, tabletest.Put(name, tabletest.Key("id", id), c, stamp...)))
}

func (w *world) update(t fatal, name, id string, c cells, stamp ...int64) {
	t.Helper()
	must(t, tabletest.Do(w.SDK, tabletest.Update(name, tabletest.Key("id", id), c, stamp...)))
}

func (w *world) delete(t fatal, name, id string) {
	t.Helper()
	must(t, tabletest.Do(w.SDK, tabletest.Delete(name, tabletest.Key("id", id))))
}

func (w *world) config(t fatal, name, text string) Config {
	t.Helper()
	path := filepath.Join(w.dir, name+".csv")
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return Config{Client: w.SDK, Examples: 10, Memory: 1 << 30, TempDir: w.dir,
		Request: &plan.Request{Inputs: []string{path}, Target: plan.Target{Table: name},
			Columns: plan.Columns{Types: map[string]plan.Type{}}}}
}

// run compares and must come to an end.
func run(t fatal, cfg Config) *Result {
	t.Helper()
	return conformance.Try(Run(context.Background(), cfg)).Must(t)
}

// counts are the numbers of a result that are not zero.
func (r *Result) counts() string {
	return nonzero("expected %d, equal %d, missing %d, different %d, expired %d, extra %d, stored %d, rejected %d, "+
		"superseded %d",
		r.RowsExpected, r.Equal, r.Missing, r.Different, r.Expired, r.Extra, r.RowsInTable, r.Rejected, r.Superseded)
}

func nonzero(format string, counts ...any) string {
	all := fmt.Sprintf(format, counts...)
	return strings.Trim(regexp.MustCompile(`(^|, )[a-z]+ 0\b`).ReplaceAllString(all, ""), ", ")
}

func wantCounts(t testing.TB, r *Result, want string) {
	t.Helper()
	conformance.Equal(t, r.counts(), want, "counts, %+v", r.Examples)
}
