package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
)

func TestEveryTypeIsComparedBitForBit(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	row := cells{"d": math.Copysign(0, -1), "e": "", "x": []byte{0, 255}, "y": []byte{}, "n": int64(-7), "f": false,
		"s": "中\x00"}
	w.put(t, name, "k", row)
	cfg := w.config(t, name, "id,d,e,x,y,n,f,s\nk,-0,\"\",AP8=,\"\",-7,false,中\x00\n")
	for c, typ := range map[string]table.Type{"d": table.Double, "e": table.String, "x": table.Binary, "y": table.Binary,
		"n": table.Integer, "f": table.Boolean, "s": table.String} {
		cfg.Request.Columns.Types[c] = plan.Type{Type: typ}
	}
	r := run(t, cfg)
	conformance.True(t, r.OK && r.Equal == 1, "the row as it was put is different: %+v", r.Examples)
	for column, other := range (cells{"d": 0.0, "e": []byte{}, "x": "\x00", "y": "", "n": -7.0, "f": int64(0), "s": "中"}) {
		w.update(t, name, "k", cells{column: other})
		r := run(t, cfg)
		conformance.True(t, !r.OK && r.Different == 1 && len(r.Examples[0].Columns) == 1 &&
			r.Examples[0].Columns[0] == column, "column %s as %T %v: %s %+v", column, other, other, r.counts(), r.Examples)
		w.update(t, name, "k", cells{column: row[column]})
	}
}

func TestRejectsAndRepeatsAreNotExpected(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	w.put(t, name, "a", cells{"n": int64(3)})
	w.put(t, name, "b", cells{"n": int64(2)})
	w.put(t, name, "old", cells{"n": int64(1)})
	cfg := w.config(t, name, "id,n\na,1\nb,2\na,3\nb,4\nc,5\nd,x\n")
	cfg.Request.Columns.Types["n"] = plan.Type{Type: table.Integer}
	file := cfg.Request.Inputs[0]
	r := run(t, cfg)
	wantCounts(t, r, "expected 3, equal 1, missing 1, different 1, extra 1, stored 3, rejected 1, superseded 2")
	conformance.True(t, r.NotCompared == 1 && r.FirstNotCompared.Line == 7, "not compared: %+v", r.FirstNotCompared)
	cfg.Rejected = rundir.Rejected{file: {4, 5}}
	r = run(t, cfg)
	conformance.True(t, !r.OK && !r.Differ && r.NotCompared == 1, "one is rejected, though the load took it: %+v", r)

	cfg.Rejected = rundir.Rejected{file: {4, 5, 6}}
	r = run(t, cfg)
	wantCounts(t, r, "expected 2, equal 2, extra 1, stored 3, rejected 3, superseded 1")
	conformance.True(t, r.OK && len(r.Examples) == 1 && r.Examples[0].Kind == Extra && r.Examples[0].Input == nil,
		"ok %v, %+v", r.OK, r.Examples)
	cfg.ExtraFails = true
	conformance.Equal(t, run(t, cfg).OK, false, "a surplus row is no failure, though it was to be")
	cfg.Request.Records = 2
	wantCounts(t, run(t, cfg), "expected 2, equal 1, different 1, extra 1, stored 3")
}

func TestExamplesNameTheirRecords(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	var text strings.Builder
	text.WriteString("id,n,m\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "k%04d,%d,%d\n", i, i, i)
		if i%100 != 7 {
			m := i
			if i%100 == 9 {
				m++
			}
			w.put(t, name, fmt.Sprintf("k%04d", i), cells{"n": int64(i), "m": int64(m)})
		}
	}
	cfg := w.config(t, name, text.String())
	cfg.Examples, cfg.Memory, cfg.Request.Read.SplitBytes = 3, 1, 512
	r := run(t, cfg)
	wantCounts(t, r, "expected 1000, equal 980, missing 10, different 10, stored 990")
	var got []string
	for _, e := range r.Examples {
		got = append(got, fmt.Sprintf("%s %s %v %d", e.Kind, e.Key, e.Columns, e.Input.Record))
	}
	want := `missing id="k0007" [] 8, missing id="k0107" [] 108, missing id="k0207" [] 208, ` +
		`different id="k0009" [m] 10, different id="k0109" [m] 110, different id="k0209" [m] 210`
	conformance.Equal(t, strings.Join(got, ", "), want, "result")
	conformance.True(t, r.SpilledRows != 0 && r.Ranges >= 2, "%+v", r)
	text2, err := json.Marshal(r.Examples[3])
	want =
		fmt.Sprintf(`{"kind":"different","key":{"id":"k0009"},"columns":["m"],"values":[{"column":"m","input":["9"],"table":["10 at N"]}],"input":{"file":%q,"record":10}}`, cfg.Request.Inputs[0])
	conformance.True(t, err == nil && regexp.MustCompile(`at \d+`).ReplaceAllString(string(text2), "at N") == want,
		"as JSON %s, %v", text2, err)
}

func TestExampleOfAnUpdateHasTheValuesOfItsColumns(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	w.put(t, name, "a", cells{"n": int64(2), "m": int64(1), "own": "x"})
	cfg := w.config(t, name, "id,n,m\na,3,1\n")
	cfg.Request.Mode = table.Update
	r := run(t, cfg)
	conformance.True(t, len(r.Examples) == 1 && len(r.Examples[0].Values) == 1 &&
		slices.Equal(r.Examples[0].Values[0].Input, []string{"3"}) &&
		strings.HasPrefix(r.Examples[0].Values[0].Table[0], "2 at "), "%+v", r.Examples)
}

func TestSampleReadsOnlyItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that waits between attempts take no time
		w := newWorld(t)
		name := w.make(t, table.Definition{})
		var text strings.Builder
		text.WriteString("id,n\n")
		for i := range 1500 {
			fmt.Fprintf(&text, "k%04d,%d\n", i, i)
			if i%2 == 0 {
				w.put(t, name, fmt.Sprintf("k%04d", i), cells{"n": int64(i)})
			}
		}
		w.put(t, name, "surplus", cells{})
		cfg := w.config(t, name, text.String())
		cfg.Sample = 0.3
		w.faults.Only = func(op string) bool { return op == "BatchGetRow" || op == "GetRange" }
		w.faults.Decide = func(r faults.Request) faults.Fault {
			switch {
			case r.Operation == "GetRange":
				t.Error("a sample reads ranges")
			case r.N%3 == 0:
				return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
			case r.N%3 == 1:
				return faults.Fault{Action: faults.DropAfter}
			}
			return faults.Fault{}
		}
		r := run(t, cfg)
		conformance.True(t, r.RowsExpected >= 300 && r.RowsExpected <= 600 && r.RowsExpected+r.NotSampled == 1500,
			"of 1500 keys %d are looked at, %d are not", r.RowsExpected, r.NotSampled)
		conformance.True(t, r.Equal+r.Missing == r.RowsExpected && r.Missing >= 100 && r.Equal >= 100 && r.Extra == 0 &&
			r.RowsInTable == r.Equal, "%s", r.counts())
		conformance.Equal(t, len(w.faults.Done()), 2, "faults that happened, %v", w.faults.Done())
		w.faults.Decide = func(faults.Request) faults.Fault {
			return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}
		}
		conformance.Refused(t, conformance.ErrorOf(Run(context.Background(), cfg)), "OTSAuthFailed", "result")
	})
}

func TestRowsPastTheirTTLAreExpired(t *testing.T) {
	now := time.Now()
	w := newWorld(t)
	day := 24 * time.Hour
	name := w.make(t, table.Definition{TimeToLive: 86400, MaxDeviation: 1 << 30})
	ms := func(ago time.Duration) int64 { return now.Add(-ago).UnixMilli() }
	w.put(t, name, "fresh", cells{"n": int64(1)}, ms(time.Hour))
	cfg := w.config(t, name, fmt.Sprintf("id,n,at\nfresh,1,%d\nold,2,%d\nlost,3,%d\n", ms(time.Hour), ms(2*day),
		ms(2*time.Hour)))
	cfg.Request.Read.Convert.VersionColumn, cfg.Request.Columns.Exclude = "at", []string{"at"}
	for _, mode := range []table.Mode{table.Put, table.Update} {
		cfg.Request.Mode = mode
		r := run(t, cfg)
		wantCounts(t, r, "expected 3, equal 1, missing 1, expired 1, stored 1")
		conformance.True(t, !r.OK && len(r.Examples) == 1 && r.Examples[0].Key.String() == `id="lost"`, "%+v", r.Examples)
	}
	// Without timestamps in the input, the time of the load counts, if it is known.
	cfg = w.config(t, name, "id,n\nfresh,1\ngone,2\n")
	wantCounts(t, run(t, cfg), "expected 2, equal 1, missing 1, stored 1")
	cfg.Loaded = now.Add(-2 * day)
	wantCounts(t, run(t, cfg), "expected 2, equal 1, expired 1, stored 1")
	cfg.Request.Mode = table.Update
	wantCounts(t, run(t, cfg), "expected 2, equal 1, expired 1, stored 1")
}

func TestTimestampsOfReplacedRowsAreCompared(t *testing.T) {
	now := time.Now().UnixMilli()
	w := newWorld(t)
	name := w.make(t, table.Definition{MaxDeviation: 1 << 30})
	w.put(t, name, "a", cells{"n": int64(1)}, now-5000)
	w.put(t, name, "b", cells{"n": int64(1)}, now-5000)
	cfg := w.config(t, name, fmt.Sprintf("id,n,at\na,1,%d\nb,1,%d\n", now-5000, now-4000))
	cfg.Request.Read.Convert.VersionColumn, cfg.Request.Columns.Exclude = "at", []string{"at"}
	r := run(t, cfg)
	conformance.True(t, r.Equal == 1 && r.Different == 1 && r.Examples[0].Key.String() == `id="b"` &&
		r.Examples[0].Columns[0] == "n", "%s %+v", r.counts(), r.Examples)
	w.update(t, name, "a", cells{"other": int64(1)})
	r = run(t, cfg)
	conformance.True(t, r.Equal == 0 && r.Different == 2 && len(r.Examples[0].Columns) == 1 &&
		r.Examples[0].Columns[0] == "other", "with a column that nobody has written: %s %+v", r.counts(), r.Examples)
}

func TestStreamComparisonDoesNotNameColumns(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	w.put(t, name, "a", cells{"n": int64(2)})
	cfg := w.config(t, name, "")
	cfg.Request.Inputs, cfg.Request.Read.Stdin = []string{"-"},
		input.Stoppable(context.Background(), strings.NewReader("id,n\na,1\n"))
	r := run(t, cfg)
	conformance.True(t, r.Different == 1 && len(r.Examples) == 1 && r.Examples[0].Columns == nil && len(r.Notes) == 1,
		"%s %+v %q", r.counts(), r.Examples, r.Notes)
}

func TestImpossibleComparisonsAreErrors(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	_, err := Run(context.Background(), w.config(t, "no_table", "id\na\n"))
	conformance.True(t, errors.Is(err, client.ErrNoTable), "a table that is not there: %v", err)
	cfg := w.config(t, name, "id,n\na,1\n")
	cfg.Request.Inputs = append(cfg.Request.Inputs, "no such file.csv")
	_, err = Run(context.Background(), cfg)
	conformance.True(t, errors.As(err, new(*plan.UsageError)), "an input that is not there: %v", err)
	cfg = w.config(t, name, "id,n\na,1\n")
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stopped)
	conformance.Is(t, conformance.ErrorOf(Run(ctx, cfg)), stopped, "stopped")
	cfg.TempMax, cfg.Memory = 1, 1
	text := "id,n\n"
	for i := range 5000 {
		text += fmt.Sprintf("a%d,1\n", i)
	}
	over := w.config(t, name, text)
	over.TempMax, over.Memory = 1, 1
	conformance.Refused(t, conformance.ErrorOf(Run(context.Background(), over)), "no space", "no disk")
}

func TestTableReplacedDuringAReadIsAnError(t *testing.T) {
	for _, sample := range []float64{0, 0.9999999} { // the second sample misses the only key once in ten million runs
		w := newWorld(t)
		name := w.make(t, table.Definition{})
		w.put(t, name, "a", cells{"n": int64(1)})
		cfg := w.config(t, name, "id,n\na,1\n")
		cfg.Sample = sample
		replaced := false
		w.faults.Only = func(op string) bool { return op == "GetRange" || op == "BatchGetRow" }
		w.faults.Decide = func(faults.Request) faults.Fault {
			if !replaced {
				replaced = true
				conformance.Equal(t, errors.Join(w.Admin.Drop(name), w.Admin.Create(name, stringID, tabletest.Plain)), nil, "error")
			}
			return faults.Fault{}
		}
		r, err := Run(t.Context(), cfg)
		conformance.True(t, errors.As(err, new(*client.ReplacedError)), "sample %v: %+v, %v", sample, r, err)
	}
}

// told implements Changes. Call number at, counted from 0, fails.
type told struct {
	at    int
	calls []string
}

var errTold = errors.New("it cannot be kept")

func (c *told) call(name string) error {
	c.calls = append(c.calls, name)
	if len(c.calls) == c.at+1 {
		return errTold
	}
	return nil
}

func (c *told) Reject([]rundir.Header, int, table.Reject) error { return c.call("reject") }
func (c *told) Range(int) (RangeChanges, error)                 { return c, c.call("range") }
func (c *told) Expected(*Change) error                          { return c.call("expected") }
func (c *told) Surplus([]table.Value) error                     { return c.call("surplus") }
func (c *told) Close() error                                    { return c.call("close") }
func (c *told) Again() error                                    { return c.call("again") }

// TestComparisonFailsOnAnyError fails each request of comparisons, and each call of Changes, once.
func TestComparisonFailsOnAnyError(t *testing.T) {
	w := newWorld(t)
	name := w.make(t, table.Definition{})
	for _, id := range []string{"a", "b", "d", "surplus"} {
		w.put(t, name, id, cells{"n": int64(1)})
	}
	w.faults.Only = func(string) bool { return true }
	const text = "id,n\na,1\nb,2\nc,1\nd,1\ne,1\nf,x\n"
	for _, kind := range []string{"all", "a sample", "changes"} {
		requests := 0
		for at := 0; at <= requests; at++ { // in the last round, no request fails
			cfg := w.config(t, name, text)
			cfg.Workers = 1
			cfg.Request.Columns.Types["n"] = plan.Type{Type: table.Integer}
			switch kind {
			case "a sample":
				cfg.Sample = 0.9999999
			case "changes":
				cfg.Changes = &told{at: -1}
			}
			failed := ""
			requests = 0
			w.faults.Decide = func(r faults.Request) faults.Fault {
				if requests++; requests == at+1 {
					failed = r.Operation
					return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}
				}
				return faults.Fault{}
			}
			r, err := Run(t.Context(), cfg)
			switch {
			case failed == "" || at == 2 && kind != "a sample": // without partition bounds, ranges are only less even
				extra := int64(1)
				if kind == "a sample" {
					extra = 0 // a sample reads only the inputs' keys
				}
				conformance.True(t, err == nil && !r.OK && r.Equal == 2 && r.Missing == 2 && r.Different == 1 && r.Extra == extra &&
					r.Rejected == 1, "%s: %+v, %v", kind, r, err)
			case err == nil || !strings.Contains(err.Error(), "OTSAuthFailed"):
				t.Errorf("%s, request %d (%s) is refused: %+v, %v", kind, at, failed, r, err)
			}
		}
		conformance.True(t, requests >= 2, "%s: %d requests", kind, requests)
	}
	w.faults.Decide = nil
	for at := 0; ; at++ {
		cfg := w.config(t, name, text)
		cfg.Workers = 1
		cfg.Request.Columns.Types["n"] = plan.Type{Type: table.Integer}
		all := &told{at: at}
		cfg.Changes = all
		if _, err := Run(t.Context(), cfg); len(all.calls) <= at {
			calls := strings.Join(all.calls, " ")
			conformance.True(t, err == nil && strings.Count(calls, "expected") == 3 && strings.Count(calls, "surplus") == 1 &&
				strings.Count(calls, "reject") == 1, "%s, %v", calls, err)
			break
		} else if !errors.Is(err, errTold) {
			t.Errorf("call %d, a %s, fails: %v", at, all.calls[at], err)
		}
	}
}

// TestComparisonStoppedBetweenRangesIsIncomplete ends the context between ranges, so that some are not compared.
func TestComparisonStoppedBetweenRangesIsIncomplete(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	stop(why)
	sorter := conformance.Try(extsort.New(extsort.Options{Spill: spill.Options{Dir: t.TempDir()}})).Must(t)
	v := &verifier{cfg: &Config{Workers: 1, Stored: new(Stored)}, tables: []*target{{}}, result: new(Result),
		sorted: conformance.Try(sorter.Sort()).Must(t), plan: &plan.Plan{Request: new(plan.Request), Wide: true}}
	defer v.sorted.Close()
	conformance.Is(t, v.compareAll(ctx), why, "it ended")
	conformance.Is(t, v.compareSample(ctx), why, "it ended")
}

func TestValuesShowTheirTypes(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{int64(5), "5"}, {5.0, "5.0"}, {0.1, "0.1"}, {1e300, "1e+300"}, {true, "true"}, {"5", `"5"`}, {"", `""`},
		{"a\nb", `"a\nb"`}, {[]byte{}, "0x"}, {[]byte{0, 255}, "0x00ff"},
		{strings.Repeat("列", 30), `"` + strings.Repeat("列", 20) + `"… (90 bytes)`},
		{strings.Repeat("a", 59) + "列", `"` + strings.Repeat("a", 59) + `"… (62 bytes)`},
		{make([]byte, 2<<20), "0x" + strings.Repeat("00", 30) + "… (2097152 bytes)"},
	} {
		conformance.Equal(t, showValue(c.value), c.want, "%v", c.value)
	}
}

func TestKeysShowTheirTypes(t *testing.T) {
	key := Key{{"i", table.Value{Type: table.Integer, Int: -5}},
		{"s", table.Value{Type: table.String, Bytes: []byte("a\"")}},
		{"b", table.Value{Type: table.Binary, Bytes: []byte{0, 255}}}}
	conformance.Equal(t, key.String(), `i=-5 s="a\"" b=0x00ff`, "string")
}

func TestBothSidesOfADifferenceAreShown(t *testing.T) {
	given := shown{}
	for _, c := range []plainbuffer.View{
		{Name: []byte("n"), Value: table.Value{Type: table.Integer, Int: 5}, Timestamp: -1},
		{Name: []byte("v"), Value: table.Value{Type: table.String, Bytes: []byte("new")}, Timestamp: 20},
		{Name: []byte("v"), Value: table.Value{Type: table.Boolean, Int: 1}, Timestamp: 10},
		{Name: []byte("gone"), Timestamp: -1},
	} {
		given.addView(c)
	}
	e := &Example{Columns: []string{"gone", "n", "other", "v"}, stored: shown{"n": {"6 at 7"}, "other": {"1 at 7"},
		"gone": {"2 at 7"}}}
	e.values(given, true)
	want := []Values{{"gone", []string{}, []string{"2 at 7"}}, {"n", []string{"5"}, []string{"6 at 7"}},
		{"other", []string{}, []string{"1 at 7"}}, {"v", []string{`"new" at 20`, "true at 10"}, []string{}}}
	conformance.Equal(t, cmp.Diff(want, e.Values), "", "(-want +got)")
	e.Values = nil
	e.values(given, false) // in updates, another record may have written the other column
	conformance.Equal(t, cmp.Diff(append(want[:2:2], want[3]), e.Values), "", "(-want +got)")
	for i := range 50 {
		e.Columns = append(e.Columns, fmt.Sprint(i))
	}
	e.Values = nil
	e.values(given, true)
	conformance.True(t, len(e.Values) == shownColumns, "%d columns are shown", len(e.Values))
}

// TestRecordsAreComparedByTheirReturnedKeys compares a table with an auto-increment key, using files of returned keys.
func TestRecordsAreComparedByTheirReturnedKeys(t *testing.T) {
	w := newWorld(t)
	const name = "numbered"
	key := []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}
	must(t, w.Admin.Create(name, key, tabletest.Plain))
	const text = "id,n\na,1\na,2\nb,3\nc,x\n"
	cfg := w.config(t, name, text)
	cfg.Request.Columns.Types["n"] = plan.Type{Type: table.Integer}
	input := cfg.Request.Inputs[0]
	line := func(record int, id, seq any) string { return fmt.Sprintf("%s,%d,%v,%v\n", input, record, id, seq) }
	var lines []string
	var seqs []int64
	for i, id := range []string{"a", "a", "b"} {
		put := tabletest.Put(name, tabletest.Key("id", id), cells{"n": int64(i + 1)})
		put.PrimaryKey.AddPrimaryKeyColumnWithAutoIncrement("seq")
		put.SetReturnPk()
		res := conformance.Try(w.SDK.PutRow(&tablestore.PutRowRequest{PutRowChange: put})).Must(t)
		seqs = append(seqs, res.PrimaryKey.PrimaryKeys[1].Value.(int64))
		lines = append(lines, line(i+1, id, seqs[i]))
	}
	const header = "file,record,id,seq\n"
	all := lines[0] + lines[1] + lines[2]
	for _, c := range []struct {
		what, file string
		want       string // the counts, or part of the error
		ok         bool
		note       string
	}{
		{"all", header + all, "equal 3", true, ""},
		{"in another order", header + lines[2] + lines[0] + lines[1], "equal 3", true, ""},
		{"two records change keys", header + line(1, "a", seqs[1]) + line(2, "a", seqs[0]) + lines[2], "equal 1, different 2",
			false, ""},
		{"the first is not there", header + lines[1] + lines[2], "equal 2, extra 1, without 1", false, ""},
		{"the last is not there", header + lines[0] + lines[1], "equal 2, extra 1, without 1", false, ""},
		{"none", header, "extra 3, without 3", false, ""},
		{"one was never answered", header + lines[0] + line(2, "a", "") + lines[2], "equal 2, extra 1, without 1", false, ""},
		{"a row that is gone", header + lines[0] + lines[1] + line(3, "b", 1<<60), "equal 2, missing 1, extra 1", false, ""},
		{"others of other inputs", header + "x.csv,1,a,5\n" + all + "x.csv,2,a,6\n", "equal 3", true, "2 keys in"},
		{"another header", "file,record,id,n\n" + all, "its header is", false, ""},
		{"half a header", "\"file", "--returned-keys", false, ""},
		{"nothing", "", "its header is", false, ""},
		{"not a record", header + lines[0] + strings.Replace(lines[1], ",2,", ",two,", 1) + lines[2], "line 3", false, ""},
		{"a number that is none", header + all + line(4, "c", "x"), "line 5: column seq", false, ""},
		{"a line that is cut", header + lines[0] + input + ",2,a\n", "--returned-keys", false, ""},
		{"a key of another record", header + lines[0] + lines[1] + line(3, "c", seqs[2]),
			"the input has changed since it was loaded", false, ""},
	} {
		cfg.Returned = filepath.Join(w.dir, "returned.csv")
		must(t, os.WriteFile(cfg.Returned, []byte(c.file), 0o600))
		r, err := Run(t.Context(), cfg)
		if err != nil {
			conformance.Contains(t, err.Error(), c.want, "%s: %v", c.what, err)
			continue
		}
		got := nonzero("equal %d, missing %d, different %d, extra %d, without %d", r.Equal, r.Missing, r.Different, r.Extra,
			r.WithoutKey)
		conformance.True(t, got == c.want && r.Differ != c.ok && r.Rejected == 1 &&
			strings.Contains(strings.Join(r.Notes, "; "), c.note) && (c.note != "" || len(r.Notes) == 0),
			"%s: %s, differ %v, %d rejected, notes %q; want %s", c.what, got, r.Differ, r.Rejected, r.Notes, c.want)
	}
	cfg.Returned += ".missing"
	conformance.Refused(t, conformance.ErrorOf(Run(t.Context(), cfg)), "", "without the file: no error")
}

// Without the key of a rejected record, a sync would delete the record's row.
func TestUnstorableRejectKeyIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	must(t, os.Mkdir(dir, 0o700))
	sorter := conformance.Try(extsort.New(extsort.Options{Memory: 1, Spill: spill.Options{Dir: dir}})).Must(t)
	defer sorter.Close()
	v := &verifier{cfg: &Config{Changes: &told{at: -1}}, plan: new(plan.Plan), recordsOf: make([]int64, 1), keeps: true,
		result: new(Result)}
	parsed := &intake.Parsed{Split: new(table.Split), Records: 2}
	for range 2 {
		parsed.Rejects = append(parsed.Rejects, intake.Reject{Key: make([]byte, 8<<10)})
	}
	if err := os.RemoveAll(dir); err != nil { // rows that do not fit in memory cannot be spilled
		t.Fatal(err)
	}
	conformance.Refused(t, v.takeRejects(parsed, sorter), "", "no error")
	v.cfg.Changes = &told{at: 1}
	err := v.takeRejects(&intake.Parsed{Split: parsed.Split, Apart: intake.Apart{Rejects: make([]intake.Reject, 2)}},
		sorter)
	conformance.True(t, errors.Is(err, errTold), "the second reject cannot be kept: %v", err)
}

// An export would leave out the row of a key that is not read. Different keys must not continue an export.
func TestSortedKeysAreCompleteOrAnError(t *testing.T) {
	w := newWorld(t)
	sorted := func(last string) *Keys {
		var text strings.Builder
		text.WriteString("id\n")
		for i := range 5000 {
			fmt.Fprintf(&text, "k%05d\n", i%4000)
		}
		r := w.config(t, "keys", text.String()+last+"\n").Request
		r.Target = plan.Target{Table: "keys", Create: true, Absent: true, Key: stringID}
		r.Mode = table.Delete
		k := conformance.Try(SortKeys(t.Context(), r, 1, w.dir)).Must(t)
		t.Cleanup(func() { must(t, k.Close()) })
		return k
	}
	all, other := sorted("k1"), sorted("k2")
	conformance.True(t, all.Count == 4001 && other.Count == 4001 && all.Sum != other.Sum, "%d and %d keys, sums %q and %q",
		all.Count, other.Count, all.Sum, other.Sum)
	frames := conformance.Try(filepath.Glob(filepath.Join(w.dir, "*", "frames"))).Must(t)
	conformance.MustEqual(t, len(frames), 2, "files of keys")
	for _, path := range frames {
		must(t, os.Truncate(path, conformance.Try(os.Stat(path)).Must(t).Size()/2))
	}
	read, failed := int64(0), error(nil)
	for _, failed = range all.From(nil) {
		read++
	}
	conformance.True(t, failed != nil && read <= all.Count, "%d of %d keys are read, %v", read, all.Count, failed)
}

// A sync would delete rows whose records are not read.
func TestUnreadRecordIsNotASurplusRow(t *testing.T) {
	w := newWorld(t)
	keys, text := [][]byte{}, "id,n\n"
	for i := range 5000 {
		keys = append(keys, table.AppendKey(nil, table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "k%04d", i)}))
		text += fmt.Sprintf("k%04d,1\n", i)
	}
	cfg := w.config(t, w.make(t, table.Definition{}), text)
	cfg.Memory, cfg.TempDir = 1, t.TempDir()
	v := conformance.Try(newVerifier(t.Context(), &cfg)).Must(t)
	defer v.plan.Close()
	must(t, v.readInput(t.Context()))
	defer v.sorted.Close()
	for _, path := range conformance.Try(filepath.Glob(filepath.Join(cfg.TempDir, "*", "frames"))).Must(t) {
		must(t, os.Truncate(path, conformance.Try(os.Stat(path)).Must(t).Size()/2))
	}
	conformance.Equal(t, (&again{of: v, tally: v.newTally(v.tables[0])}).compare(t.Context(), keys) != nil, true, "error")
}
