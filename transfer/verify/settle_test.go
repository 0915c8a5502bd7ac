package verify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/tablescan"
)

// live is a source that others write to, with rows of an id and an n, and the table that is compared with it.
type live struct {
	*world
	set    func(id string, n int)
	remove func(id string)
	origin func() source.Origin
	table  string
	at     int64 // of all cells
}

// apply makes the table have a row as the source has it.
func (l *live) apply(id string, n int) { l.put(l.t.(fatal), l.table, id, cells{"n": int64(n)}, l.at) }

func (l *live) config(settle time.Duration) Config {
	return Config{Client: l.SDK, Examples: 10, Memory: 1 << 30, TempDir: l.dir, ExtraFails: true, SettleFor: settle,
		Request: &plan.Request{Inputs: []string{"live"}, Target: plan.Target{Table: l.table},
			Columns: plan.Columns{Types: map[string]plan.Type{"n": {Type: table.Integer}}},
			Read:    plan.Read{Sources: l.origin()}}}
}

// look calls do before each request of a kind for the table or the source, with the number of it from 1.
func (l *live) look(op string, do func(n int)) {
	n := 0
	var busy sync.Mutex
	l.faults.Only = func(string) bool { return true }
	l.faults.Decide = func(r faults.Request) faults.Fault {
		if r.Operation == op && busy.TryLock() { // what it does itself is not looked at
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

// eachSource runs a test with each kind of sources. Waits take no time.
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

// changing has a row of each kind that differs at first, and agrees when the table was read again so many times.
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
			l.set("late", 1) // it is seen no more: the source was read
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
		if s := r.Settled; s.Differed != 4 || s.Remain != 4 || r.Extra != 1 { // one that came late, and no surplus row
			t.Errorf("%+v, %s", s, r.counts())
		}
	})
}

func TestSettlingRefusesUnreadableSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, change := range map[string]func(*live, *Config){
			"cannot be read again row by row": func(l *live,
				c *Config) {
				*c = l.world.config(t, l.table, "id,n\na,1\n")
				c.SettleFor = time.Second
			},
			"--sample": func(_ *live, c *Config) { c.Sample = 0.5 },
			"column id of the key": func(_ *live, c *Config) {
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

func TestTooManyDifferencesAreNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sources["sqlite"](t)
		l.set("a", 1)
		l.set("b", 1)
		cfg := l.config(time.Hour)
		cfg.mostUnsettled = 1
		r := run(t, cfg)
		conformance.True(t, r.Settled == nil && r.Missing == 2 && len(r.Examples) == 2 &&
			strings.Contains(strings.Join(r.Notes, "\n"), "2 rows differ, more than the 1 that --settle-for reads again"),
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
			case err == nil: // also where it could not ask where partitions begin, or look at a sample
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
			// while it waits, and when it begins to read
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
