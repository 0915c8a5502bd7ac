package verify

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/tablescan"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"
)

// checkOf configures a check of a CSV text with a key of one string column.
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
		sources := map[string]map[string]bool{} // the values from which each key was made
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

func TestEqualAndDifferentRepeatsAreCounted(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		text, line := "k,\"v\nw\"\n", 3
		first := map[string]string{}
		atLine := map[int]string{} // the row that begins at a line
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

func TestAutoIncrementKeysAreNeverRepeated(t *testing.T) {
	cfg := checkOf(t, t.TempDir(), "k,v\na,1\na,2\n", keyexpr.Column{Name: "k", Type: table.String})
	cfg.Request.Target.Key = append(cfg.Request.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
	r, err := Check(context.Background(), cfg)
	conformance.True(t, err == nil && r.OK && !r.Unique && r.Repeated == 0 &&
		strings.Contains(strings.Join(r.Notes, ";"), "numbers the records (n)"), "%+v, %v", r, err)
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

func TestValuesWithDelimitersAreDifferent(t *testing.T) {
	r, err := Check(context.Background(), checkOf(t, t.TempDir(), "k,s,u\na,\"x,y\",z\na,x,\"y,z\"\n",
		keyexpr.Column{Name: "k", Type: table.String}))
	conformance.True(t, err == nil && r.Repeated == 1 && r.Different == 1, "%+v, %v", r, err)
}

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

func init() {
	// Make few draws by default; -rapid.checks sets more.
	conformance.Must(conformance.Sure{}, flag.Set("rapid.checks", "35"))
}

// world is an in-memory embedded store and a folder for inputs.
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

// fatal is the common subset of testing.T and rapid.T.
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

// put replaces a row. Without a stamp, its cells get the store's time.
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

// run runs a comparison, which must succeed.
func run(t fatal, cfg Config) *Result {
	t.Helper()
	return conformance.Try(Run(context.Background(), cfg)).Must(t)
}

// counts formats the nonzero numbers of a result.
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

// live is a source that changes while it is read, whose rows have an id and an n, and a table to compare with it.
type live struct {
	*world
	set    func(id string, n int)
	remove func(id string)
	origin func() source.Origin
	table  string
	at     int64 // timestamp of all cells
}

// apply writes a row to the table, with the source's timestamp.
func (l *live) apply(id string, n int) { l.put(l.t.(fatal), l.table, id, cells{"n": int64(n)}, l.at) }

func (l *live) config(settle time.Duration) Config {
	return Config{Client: l.SDK, Examples: 10, Memory: 1 << 30, TempDir: l.dir, ExtraFails: true, SettleFor: settle,
		Request: &plan.Request{Inputs: []string{"live"}, Target: plan.Target{Table: l.table},
			Columns: plan.Columns{Types: map[string]plan.Type{"n": {Type: table.Integer}}},
			Read:    plan.Read{Sources: l.origin()}}}
}

// look calls do before each request for op, to the table or the source, with the number of the request from 1.
func (l *live) look(op string, do func(n int)) {
	n := 0
	var busy sync.Mutex
	l.faults.Only = func(string) bool { return true }
	l.faults.Decide = func(r faults.Request) faults.Fault {
		if r.Operation == op && busy.TryLock() { // requests made by do do not count
			n++
			do(n)
			busy.Unlock()
		}
		return faults.Fault{}
	}
}

var sources = map[string]func(t *testing.T) *live{
	"table": func(t *testing.T) *live {
		l := &live{world: newWorld(t), at: time.Now().UnixMilli()}
		l.table = l.make(t, table.Definition{})
		from := l.make(t, table.Definition{})
		l.set = func(id string, n int) { l.put(t, from, id, cells{"n": int64(n)}, l.at) }
		l.remove = func(id string) { l.delete(t, from, id) }
		l.origin = func() source.Origin {
			return tablescan.New(tablescan.Config{Client: l.SDK, Table: conformance.Try(l.Admin.Describe(from)).Must(t)})
		}
		return l
	},
	"sqlite": func(t *testing.T) *live {
		l := &live{world: newWorld(t), at: time.Now().UnixMilli()}
		l.table = l.make(t, table.Definition{})
		db := filepath.Join(l.dir, "live.db")
		do := func(text string, a ...any) {
			t.Helper()
			c := conformance.Try(sql.Open("sqlite", db)).Must(t)
			_, err := c.Exec(text, a...)
			must(t, errors.Join(err, c.Close()))
		}
		do("PRAGMA journal_mode=WAL")
		do("CREATE TABLE t (id TEXT PRIMARY KEY NOT NULL, n INTEGER)")
		l.set = func(id string, n int) { do("INSERT OR REPLACE INTO t VALUES (?, ?)", id, n) }
		l.remove = func(id string) { do("DELETE FROM t WHERE id = ?", id) }
		l.origin = func() source.Origin {
			return sqltable.New(*conformance.Try(open.Config("sqlite:"+db+"?table=t", "")).Must(t))
		}
		return l
	},
}

// eachSource runs a test with each kind of source, in a bubble in which waits take no time.
func eachSource(t *testing.T, test func(*testing.T, *live)) {
	for name, open := range sources {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, open(t)) }) })
	}
}

func examplesOf(r *Result) string {
	var all []string
	for _, e := range r.Examples {
		all = append(all, fmt.Sprint(e.Kind, " ", e.Key, " ", e.Columns, " ", e.Values, e.Input))
	}
	return strings.Join(all, "; ")
}

// changing sets up rows with each kind of difference. They settle at different rereads of the table.
func (l *live) changing() {
	for _, id := range []string{"a", "equal", "missing", "moving", "withdrawn"} {
		l.set(id, 1)
	}
	l.apply("a", 1)
	l.apply("equal", 1)
	l.apply("surplus", 1)
	l.apply("moving", 0)
	l.look("BatchGetRow", func(n int) {
		switch n {
		case 1:
			l.apply("missing", 1)
			l.set("late", 1) // too late for this reread of the source
		case 2:
			l.apply("moving", 1)
		case 3:
			l.delete(l.t.(fatal), l.table, "surplus")
			l.remove("withdrawn")
		}
	})
}

func TestRowsInFlightSettle(t *testing.T) {
	eachSource(t, func(t *testing.T, l *live) {
		l.changing()
		r := run(t, l.config(time.Hour))
		wantCounts(t, r, "expected 4, equal 4, stored 4")
		s := r.Settled
		conformance.True(t, r.OK && s != nil && s.Differed == 4 && s.Settled == 4 && s.Remain == 0 && s.Rounds == 4 &&
			s.Seconds == 1+2+4+5 && len(r.Examples) == 0, "%+v, %s", s, examplesOf(r))
	})
}

// When a live source is read again, a record that the load rejected may have another number.
func TestRejectsOfALiveSourceAreNotMatchedByNumber(t *testing.T) {
	eachSource(t, func(t *testing.T, l *live) {
		l.set("a", 1)
		l.set("b", 1)
		l.apply("a", 1)
		cfg := l.config(0)
		v := conformance.Try(newVerifier(t.Context(), &cfg)).Must(t)
		cfg = l.config(0)
		cfg.Rejected = rundir.Rejected{v.plan.Sources[0].Name: {1, 2}}
		v.plan.Close()
		wantCounts(t, run(t, cfg), "expected 2, equal 1, missing 1, stored 1")
	})
}

func TestUnsettledRowsAreReported(t *testing.T) {
	eachSource(t, func(t *testing.T, l *live) {
		l.changing()
		for _, id := range []string{"wrong", "wrong2", "lacking"} {
			l.set(id, 1)
		}
		l.apply("wrong", 2)
		l.apply("wrong2", 0)
		l.apply("zombie", 3)
		cfg := l.config(30 * time.Second)
		r := run(t, cfg)
		wantCounts(t, r, "expected 7, equal 4, missing 1, different 2, extra 1, stored 7")
		s := r.Settled
		conformance.True(t, !r.OK && s.Differed == 8 && s.Settled == 4 && s.Remain == 4 && s.Seconds == 30, "%+v", s)
		got := strings.ReplaceAll(examplesOf(r), fmt.Sprint(" at ", l.at), "")
		want := `missing id="lacking" [] [] <nil>; different id="wrong" [n] [{n [1] [2]}] <nil>; different id="wrong2" [n] [{n [1] [0]}] <nil>; extra id="zombie" [] [] <nil>`
		conformance.Equal(t, got, want, "examples")

		l.faults.Decide = nil
		cfg = l.config(30 * time.Second)
		cfg.ExtraFails = false
		r = run(t, cfg)
		if s := r.Settled; s.Differed != 4 || s.Remain != 4 || r.Extra != 1 { // with the late, without the surplus row
			t.Errorf("%+v, %s", s, r.counts())
		}
	})
}

func TestSettlingRefusesUnreadableSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, change := range map[string]func(*live, *Config){
			"cannot be reread; only tables": func(l *live,
				c *Config) {
				*c = l.world.config(t, l.table, "id,n\na,1\n")
				c.SettleFor = time.Second
			},
			"--sample": func(_ *live, c *Config) { c.Sample = 0.5 },
			"key column id of": func(_ *live, c *Config) {
				c.Request.Columns.Keys = append(c.Request.Columns.Keys, conformance.Try(keyexpr.ParseColumn("id=md5(id)")).Must(t))
			},
		} {
			l := sources["table"](t)
			l.set("a", 1)
			cfg := l.config(time.Second)
			change(l, &cfg)
			_, err := Run(t.Context(), cfg)
			conformance.Refused(t, err, want, "%s", want)
			usage := new(plan.UsageError)
			conformance.True(t, errors.As(err, &usage) && strings.Contains(err.Error(), "--settle-for"), "%s: %v", want, err)
		}
	})
}

func TestTooManyDifferencesAreNotReread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sources["sqlite"](t)
		l.set("a", 1)
		l.set("b", 1)
		cfg := l.config(time.Hour)
		cfg.mostUnsettled = 1
		r := run(t, cfg)
		conformance.True(t, r.Settled == nil && r.Missing == 2 && len(r.Examples) == 2 &&
			strings.Contains(strings.Join(r.Notes, "\n"), "2 rows differ, more than the 1 that --settle-for rereads"),
			"%+v", r)
	})
}

func TestSettlingFailsOnAnyError(t *testing.T) {
	eachSource(t, func(t *testing.T, l *live) {
		for _, id := range []string{"a", "b"} {
			l.set(id, 1)
		}
		l.apply("b", 2)
		l.apply("c", 2)
		l.faults.Only = func(string) bool { return true }
		requests, ofRounds := 0, 0
		for at := 0; at <= requests; at++ {
			failed, began := "", time.Now()
			cfg := l.config(time.Second)
			cfg.Workers, requests = 1, 0
			l.faults.Decide = func(r faults.Request) faults.Fault {
				if requests++; requests == at+1 {
					if failed = r.Operation; time.Since(began) >= time.Second {
						ofRounds++
					}
					return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}
				}
				return faults.Fault{}
			}
			r, err := Run(t.Context(), cfg)
			l.faults.Decide = nil
			switch {
			case err == nil: // errors about partition bounds and samples are ignored
				conformance.True(t, (failed == "" || ofRounds == 0) && r.Settled.Rounds == 1 && r.Settled.Remain == 3 &&
					r.Missing == 1 && r.Different == 1 && r.Extra == 1, "request %d (%s) is refused: %+v", at, failed, r)
			case !strings.Contains(err.Error(), "OTSAuthFailed"):
				t.Errorf("request %d (%s) is refused: %v", at, failed, err)
			}
		}
		conformance.True(t, ofRounds != 0, "none of %d requests was of a round", requests)
		for at := 0; ; at++ {
			all := &told{at: at}
			cfg := l.config(time.Second)
			cfg.Changes, cfg.Workers = all, 1
			if _, err := Run(t.Context(), cfg); len(all.calls) <= at {
				calls := strings.Join(all.calls, " ")
				conformance.True(t, err == nil && strings.HasSuffix(calls, "again range expected expected surplus close"),
					"%s, %v", calls, err)
				break
			} else if !errors.Is(err, errTold) {
				t.Errorf("call %d, %s, fails: %v", at, all.calls[at], err)
			}
		}
	})
}

func TestSettlingEndsWithItsContext(t *testing.T) {
	eachSource(t, func(t *testing.T, l *live) {
		l.set("a", 1)
		stopped := errors.New("stopped")
		for _, after := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
			// End the context during a wait or when reading begins.
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(after, func() { stop(stopped) })
			began := time.Now()
			if r, err := Run(ctx, l.config(time.Hour)); !errors.Is(err, stopped) || time.Since(began) > after+2*time.Second {
				t.Errorf("after %v: %+v, %v, %v", after, r, err, time.Since(began))
			}
		}
		ctx, stop := context.WithCancelCause(t.Context())
		l.look("BatchGetRow", func(int) { stop(stopped) })
		r, err := Run(ctx, l.config(time.Hour))
		conformance.True(t, err != nil, "%+v", r)
	})
}
