package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/tablescan"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

// world is an embedded store with a table t whose rows have the keys (0, "k00000"), (0, "k00001"), …
type world struct {
	*tabletest.Store
	table  *client.Table
	faults *faults.Plan
}

const perKey = 7 // rows per partition-key value

func newWorld(t *testing.T, rows int) *world {
	t.Helper()
	w := &world{faults: &faults.Plan{Only: func(op string) bool { return op == "GetRange" }}}
	w.Store = tabletest.Open(t, server.Options{Faults: w.faults})
	key := []table.KeyColumn{{Name: "p", Type: table.Integer}, {Name: "k", Type: table.String}}
	must(t, w.Admin.Create("t", key, tabletest.Plain))
	tabletest.Fill(t, w.SDK, rows, func(i int) tablestore.RowChange { // each fifth of the table has a different column
		return tabletest.Put("t", tabletest.Key("p", int64(i/perKey), "k", fmt.Sprintf("k%05d", i)),
			tabletest.Cells{"n": int64(i), fmt.Sprint("c", i*5/rows): "x,y"})
	})
	w.table = conformance.Try(w.Admin.Describe("t")).Must(t)
	return w
}

func (w *world) config(format string, columns ...string) Config {
	return Config{Scan: tablescan.Config{Client: w.SDK, Table: w.table, Columns: columns},
		Holds: archive.Selection{Columns: columns}, Target: "test", Format: format}
}

func (w *world) text(t *testing.T, c Config) string {
	t.Helper()
	var out bytes.Buffer
	must(t, conformance.ErrorOf(To(context.Background(), c, &out)))
	return out.String()
}

func values(ns ...int64) (all []table.Value) {
	for _, n := range ns {
		all = append(all, table.Value{Type: table.Integer, Int: n})
	}
	return all
}

func TestParallelRangesAreDeliveredInKeyOrder(t *testing.T) {
	const rows = 10_000
	w := newWorld(t, rows)
	for _, bounds := range [][]table.Value{nil, values(1), values(-5, 0, 1, 2, 3, 700, 701, 2000, 5000),
		values(slices.Collect(func(yield func(int64) bool) {
			for i := range int64(200) {
				if !yield(i * 10) {
					return
				}
			}
		})...)} {
		for _, after := range []int{0, 3, 2003} {
			var from []table.Value
			if after > 0 {
				from = append(values(int64(after/perKey)), table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "k%05d", after)})
			}
			next := int64(after)
			err := deliver(context.Background(), DefaultReaders, ranges(w.SDK, w.table, scan.Options{From: from}, bounds),
				func(_, row []byte) error {
					r := conformance.Try(new(client.PageMemory).Unpack(row)).Must(t)
					for _, c := range r.Columns {
						if c.ColumnName == "n" && c.Value != next {
							return fmt.Errorf("row %v comes where %d should", c.Value, next)
						}
					}
					next++
					return nil
				})
			conformance.True(t, err == nil && next == rows, "%d bounds, from row %d to %d, %v", len(bounds), after, next, err)
		}
	}
	// Neither an early end nor an error leaves a goroutine running.
	for _, stop := range []error{errEnough, errors.New("no more")} {
		seen := 0
		err := deliver(context.Background(), DefaultReaders, ranges(w.SDK, w.table, scan.Options{}, values(500, 1000, 1500)),
			func([]byte, []byte) error {
				if seen++; seen == 10 {
					return stop
				}
				return nil
			})
		conformance.True(t, seen == 10 && (stop == errEnough) == (err == nil), "%d rows, %v", seen, err)
	}
}

// TestInterruptedExportContinues stops an export at request 0, 1, 2 … and continues until it is complete.
func TestInterruptedExportContinues(t *testing.T) {
	const rows = 17_000 // four pages
	w := newWorld(t, rows)
	for _, c := range []Config{w.config(CSV), w.config(CSV, "n", "c4"), w.config(JSONL), w.config(Typed),
		w.config(Parquet), {Limit: 11_111}} {
		if c.Limit > 0 {
			c = w.config(JSONL, "n")
			c.Limit = 11_111
		}
		want := w.text(t, c)
		dir := t.TempDir()
		c.Path, c.Marks = filepath.Join(dir, "out"), 5*time.Millisecond
		attempts, resumed := 0, int64(0)
		for failAt := 0; ; failAt++ {
			before := w.faults.Requests()
			w.faults.Decide = func(r faults.Request) faults.Fault {
				if r.N-before >= 1+failAt%2 {
					return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}
				}
				return faults.Fault{}
			}
			// After a crash, the file may have data that was not synced.
			if parts, _ := filepath.Glob(c.Path + ".part*"); len(parts) == 1 {
				f := conformance.Try(os.OpenFile(parts[0], os.O_APPEND|os.O_WRONLY, 0)).Must(t)
				must(t, conformance.ErrorOf(f.WriteString("half a ro")))
				f.Close()
			}
			r, err := ToFile(context.Background(), c)
			attempts++
			resumed = max(resumed, r.Resumed)
			if err == nil {
				break
			}
			if _, missing := os.Stat(c.Path); missing == nil || !strings.Contains(err.Error(), "OTSAuthFailed") {
				t.Fatalf("attempt %d: %v, the file is there: %v", attempts, err, missing == nil)
			}
			conformance.MustTrue(t, attempts <= 20, "it never ends")
		}
		w.faults.Decide = nil
		got, err := os.ReadFile(c.Path)
		conformance.True(t, err == nil && string(got) == want, "%s %v: after %d attempts the file has %d bytes, want %d, %v",
			c.Format, c.Scan.Columns, attempts, len(got), len(want), err)
		conformance.True(t, attempts >= 2 && resumed != 0,
			"%s %v: %d attempts, at most %d rows: nothing was interrupted", c.Format, c.Scan.Columns, attempts, resumed)
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		conformance.Equal(t, len(left), 1, "left behind: %q", left)
	}
}

// keysOf holds ordering keys in memory. nil stands for an error.
type keysOf [][]byte

func (k keysOf) From(first []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, key := range k {
			if key == nil {
				yield(nil, errFull)
				return
			}
			if bytes.Compare(key, first) >= 0 && !yield(key, nil) {
				return
			}
		}
	}
}

// firstKeys returns the keys of a world's first n rows.
func firstKeys(n int64) (keys keysOf) {
	for i := range n {
		keys = append(keys, table.OrderingKey(append(values(i/perKey),
			table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "k%05d", i)})))
	}
	return keys
}

// TestStoppedKeyExportContinuesAtTheFirstUnreadKey uses a service that refuses one request and accepts later ones.
func TestStoppedKeyExportContinuesAtTheFirstUnreadKey(t *testing.T) {
	const rows = 30 * scan.MaxGetRows
	w := newWorld(t, rows)
	c := w.config(JSONL)
	want := w.text(t, c)
	c.Keys, c.Path = firstKeys(rows), filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	w.faults.Change(func(op string) bool { return op == "BatchGetRow" }, func(r faults.Request) faults.Fault {
		if r.N == 2 || r.N > DefaultReaders { // the retries must also fail
			return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
		}
		return faults.Fault{}
	})
	r, err := ToFile(ctx, c)
	conformance.MustTrue(t, errors.Is(err, context.Canceled) && r.Rows != rows, "%d rows, %v", r.Rows, err)
	w.faults.Change(nil, nil)
	must(t, conformance.ErrorOf(ToFile(t.Context(), c)))
	got, err := os.ReadFile(c.Path)
	conformance.True(t, err == nil && string(got) == want,
		"the file has %d rows, want %d, %v", bytes.Count(got, []byte("\n")), rows, err)
}

func TestChangedExportIsNotContinued(t *testing.T) {
	w := newWorld(t, 12_000)
	c := w.config(JSONL)
	c.Path = filepath.Join(t.TempDir(), "out")
	interrupt := func() {
		t.Helper()
		before := w.faults.Requests()
		w.faults.Decide = func(r faults.Request) faults.Fault {
			if r.N > before {
				return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}
			}
			return faults.Fault{}
		}
		r, err := ToFile(context.Background(), c)
		conformance.MustTrue(t, err != nil && r.Rows != 0, "it was not interrupted: %d rows, %v", r.Rows, err)
		w.faults.Decide = nil
	}
	interrupt()
	other := *w.table
	other.Key = []table.KeyColumn{{Name: "p", Type: table.Integer}, {Name: "k", Type: table.Binary}}
	again := *w.table
	again.Created++
	for what, change := range map[string]func(*Config){
		"the time at which the table was made": func(c *Config) { c.Scan.Table = &again },
		"the target":                           func(c *Config) { c.Target = "another" },
		"--format":                             func(c *Config) { c.Format = CSV },
		"--columns":                            func(c *Config) { c.Holds.Columns = []string{} },
		"--limit":                              func(c *Config) { c.Limit = 5 },
		"the table's primary key":              func(c *Config) { c.Scan.Table = &other },
	} {
		changed := c
		change(&changed)
		var refused *archive.ChangedError
		_, err := ToFile(context.Background(), changed)
		conformance.True(t, errors.As(err, &refused) && len(refused.Changes) == 1 &&
			strings.HasPrefix(refused.Changes[0], what+" was "), "with another %s: %v", what, err)
	}
	// The sidecar of another version lacks data about the rows.
	text := conformance.Try(os.ReadFile(c.Path + sidecarSuffix)).Must(t)
	older := bytes.Replace(text, fmt.Appendf(nil, `"version": %d`, stateVersion), []byte(`"version": 0`), 1)
	must(t, os.WriteFile(c.Path+sidecarSuffix, older, 0o644))
	if _, err := ToFile(context.Background(), c); !errors.As(err, new(*progress.UnfitError)) ||
		!strings.Contains(err.Error(), "by an earlier version of tsimport") {
		t.Errorf("of another version: %v", err)
	}
	must(t, os.WriteFile(c.Path+sidecarSuffix, text, 0o644))
	// An export cannot be continued if the output or the sidecar is damaged.
	must(t, os.Truncate(c.Path+partSuffix, 10))
	conformance.Refused(t, conformance.ErrorOf(ToFile(context.Background(), c)), "--fresh", "a file that has lost its end")
	must(t, os.WriteFile(c.Path+sidecarSuffix, []byte("{"), 0o644))
	conformance.Refused(t, conformance.ErrorOf(ToFile(context.Background(), c)), "--fresh", "half a sidecar")
	c.Fresh = true
	r, err := ToFile(context.Background(), c)
	conformance.True(t, err == nil && r.Resumed == 0 && r.Rows == 12_000, "fresh: %+v, %v", r, err)
}

// stubborn accepts a number of rows and then fails like a full disk.
type stubborn struct {
	scan.Formatter
	rows int
}

var errFull = errors.New("no space left on device")

func (f *stubborn) Write(r *scan.Fields) error {
	if f.rows--; f.rows < 0 {
		return errFull
	}
	return f.Formatter.Write(r)
}

func (f *stubborn) Flush() error {
	if f.rows < 0 {
		return errFull
	}
	return f.Formatter.Flush()
}

func TestFailedExportReportsWhatItKept(t *testing.T) {
	w := newWorld(t, 500)
	for name, tt := range map[string]struct {
		takes int
		marks time.Duration
		kept  int64
	}{
		"nothing was noted":           {100, time.Hour, 0},
		"the row before the last was": {lookedEach, time.Nanosecond, lookedEach},
	} {
		c := w.config(JSONL)
		c.Path, c.Marks = filepath.Join(t.TempDir(), "out.jsonl"), tt.marks
		e := newExporter(t.Context(), &c)
		e.wrap = func(f scan.Formatter) scan.Formatter { return &stubborn{f, tt.takes} }
		err := e.toFile()
		conformance.True(t, errors.Is(err, errFull) && e.result.Kept == tt.kept,
			"%s: %v, %d rows are kept, want %d", name, err, e.result.Kept, tt.kept)
		left, err := filepath.Glob(c.Path + "*")
		conformance.True(t, err == nil && (len(left) > 0) == (tt.kept > 0), "%s: %d rows are kept in %q", name, tt.kept, left)
		if r, err := ToFile(t.Context(), c); err != nil || r.Resumed != tt.kept || r.Rows != 500 {
			t.Errorf("%s, then there is room: %+v, %v", name, r, err)
		}
	}
	// The rows are written, but the progress cannot be recorded.
	c := w.config(JSONL)
	c.Path = filepath.Join(t.TempDir(), "out.jsonl")
	must(t, os.Mkdir(c.Path+sidecarSuffix+atomicfile.Suffix, 0o755))
	r, err := ToFile(t.Context(), c)
	conformance.True(t, err != nil && r.Kept == 0, "%+v, %v; want no row kept", r, err)
	left, _ := filepath.Glob(c.Path + ".part*")
	conformance.True(t, len(left) == 0, "%q is left", left)
}

// TestExportOfAReplacedTableFails replaces the table after each page in turn.
func TestExportOfAReplacedTableFails(t *testing.T) {
	otherKey := []table.KeyColumn{{Name: "p", Type: table.Integer}, {Name: "k", Type: table.Binary}}
	for name, tt := range map[string]struct {
		after  int
		key    []table.KeyColumn // key of the new table; nil means that none is created
		format string
		silent bool // the service does not report creation times
	}{
		"by another": {1, []table.KeyColumn{{Name: "p", Type: table.Integer},
			{Name: "k", Type: table.String}}, JSONL, false},
		"before the last page": {3, []table.KeyColumn{{Name: "p", Type: table.Integer},
			{Name: "k", Type: table.String}}, CSV, false},
		"by none":                       {2, nil, JSONL, false},
		"by another with another key":   {1, otherKey, JSONL, true},
		"by none, with no time to know": {1, nil, CSV, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4_250*(tt.after+1)) // one page more than is read before the replacement
			if tt.silent {
				w.table.Created = 0
			}
			before := w.faults.Requests()
			w.faults.Decide = func(r faults.Request) faults.Fault {
				if r.N != before+tt.after {
					return faults.Fault{}
				}
				err := w.Admin.Drop("t")
				if err == nil && tt.key != nil {
					err = w.Admin.Create("t", tt.key, tabletest.Plain)
				}
				conformance.Equal(t, err, nil, "error")
				return faults.Fault{}
			}
			c := w.config(tt.format)
			if tt.format == CSV {
				c.Scan.Columns = nil
			}
			c.Path, c.Marks = filepath.Join(t.TempDir(), "out"), 10*time.Millisecond
			replaced := new(client.ReplacedError)
			r, err := ToFile(t.Context(), c)
			conformance.True(t, errors.As(err, &replaced) && !strings.Contains(err.Error(), "\n") && r.Kept == 0 && r.Rows != 0,
				"%+v, %v", r, err)
			conformance.Refused(t, conformance.ErrorOf(os.Stat(c.Path)), "", "the file has its name")
			// The export cannot be continued, even if another table has the same name.
			changed := new(archive.ChangedError)
			r, err = ToFile(t.Context(), c)
			conformance.True(t, errors.As(err, &changed) && r.Resumed == 0, "again: %+v, %v", r, err)
			_, err = To(t.Context(), c, &bytes.Buffer{})
			conformance.True(t, errors.As(err, &replaced), "to a stream: %v", err)
		})
	}
}

// TestArchiveOfReplacedTableFails replaces the table whenever it is described: the last time follows the last row.
func TestArchiveOfReplacedTableFails(t *testing.T) {
	described := func(replaced int) (n int, r ArchiveResult, err error) {
		w := newWorld(t, 8_500)
		w.faults.Only = func(operation string) bool { return operation == "DescribeTable" }
		w.faults.Decide = func(faults.Request) faults.Fault {
			if n++; n == replaced {
				must(t, w.Admin.Drop("t"))
				must(t, w.Admin.Create("t", w.table.Key, tabletest.Plain))
			}
			return faults.Fault{}
		}
		r, err = ToArchive(t.Context(), w.archive(t.TempDir()))
		return n, r, err
	}
	n, r, err := described(-1)
	conformance.MustTrue(t, err == nil && n > 0 && r.Manifest != nil, "described %d times: %+v, %v", n, r, err)
	for i := range n {
		_, r, err := described(i + 1)
		conformance.True(t, errors.As(err, new(*client.ReplacedError)) && r.Manifest == nil, "%d of %d: %+v, %v", i+1, n, r,
			err)
	}
}

func TestRowsAreKeptIfFileCannotBeNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	o, _, err := openOutput(path, partSuffix, state{}, false)
	must(t, err)
	must(t, conformance.ErrorOf(o.file.WriteString("rows")))
	must(t, os.MkdirAll(filepath.Join(path, "a folder that has appeared"), 0o755))
	conformance.Refused(t, o.finish(), "write output", "the name of a folder")
	text := conformance.Try(os.ReadFile(path + partSuffix)).Must(t)
	conformance.Equal(t, string(text), "rows", "the rows")
}

func TestLinkInPlaceOfAPartIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, part := filepath.Join(dir, "victim"), filepath.Join(dir, "out.csv"+partSuffix)
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	if err := os.Symlink(victim, part); err != nil {
		t.Skip(err)
	}
	o, _, err := openOutput(filepath.Join(dir, "out.csv"), partSuffix, state{}, false)
	must(t, err)
	must(t, conformance.ErrorOf(o.file.WriteString("rows")))
	must(t, o.mark(o.at))
	must(t, o.file.Close())
	// A file to continue must not be a link either.
	must(t, os.Remove(part))
	must(t, os.Symlink(victim, part))
	_, _, err = openOutput(filepath.Join(dir, "out.csv"), partSuffix, state{}, false)
	conformance.True(t, err != nil, "a link was continued")
	text, err := os.ReadFile(victim)
	conformance.True(t, err == nil && string(text) == "precious", "the file behind the link holds %q, %v", text, err)
}

// TestExportStoppedWhileThrottledReportsIt stops exports of every format after the service has refused them.
func TestExportStoppedWhileThrottledReportsIt(t *testing.T) {
	stop := errors.New("stopped by the user")
	for _, format := range []string{CSV, JSONL, Typed, Parquet, "archive"} {
		w := newWorld(t, 500)
		ctx, cancel := context.WithCancelCause(t.Context())
		w.faults.Decide = func(r faults.Request) faults.Fault {
			if r.N > 0 { // a retry
				cancel(stop)
			}
			return faults.Fault{Action: faults.Refuse, Code: "OTSNotEnoughCapacityUnit"}
		}
		c := w.config(format)
		c.Path = filepath.Join(t.TempDir(), "out")
		var err error
		if format == "archive" {
			_, err = ToArchive(ctx, ArchiveConfig{Scan: c.Scan, Target: c.Target, Dir: c.Path})
		} else {
			_, err = ToFile(ctx, c)
		}
		stopped := new(scan.StoppedError)
		conformance.True(t, errors.As(err, &stopped) && errors.Is(err, stop), "%s: %v", format, err)
		cancel(nil)
	}
}

// Two concurrent exports to one file would replace each other's output or mix their rows.
func TestConcurrentExportToTheSameFileIsRefused(t *testing.T) {
	w := newWorld(t, 500)
	for _, format := range []string{CSV, JSONL, Parquet} {
		c := w.config(format)
		c.Path, c.Marks = filepath.Join(t.TempDir(), "out"), time.Nanosecond
		e := newExporter(t.Context(), &c)
		tried := false
		e.wrap = func(f scan.Formatter) scan.Formatter {
			second := c
			second.Fresh = true
			_, err := ToFile(t.Context(), second)
			busy := new(BusyError)
			conformance.True(t, errors.As(err, &busy), "%s: a second export: %v", format, err)
			tried = true
			return f
		}
		err := e.toFile()
		conformance.MustTrue(t, err == nil && tried, "%v %v", err, tried)
		left, err := filepath.Glob(c.Path + "?*")
		conformance.True(t, err == nil && len(left) == 0, "%q is left", left)
	}
}

func TestLockFileIsNamed(t *testing.T) {
	conformance.Refused(t, notLocked("out.csv", &rundir.HeldError{Stale: "out.holder"}),
		"if it has ended, delete out.holder", "another machine's")
	_, err := lockOutput(filepath.Join(t.TempDir(), "none", "out.csv"))
	conformance.Refused(t, err, "create output: ", "in no folder")
}

// A killed export leaves a lock file that no process holds.
func TestLockOfAKilledExportIsTaken(t *testing.T) {
	c := newWorld(t, 10).config(JSONL)
	c.Path = filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(c.Path+lockSuffix, nil, 0o600))
	r, err := ToFile(context.Background(), c)
	conformance.True(t, err == nil && r.Rows == 10, "%+v, %v", r, err)
}

func TestServerTextIsEscaped(t *testing.T) {
	w := newWorld(t, 3)
	for format, want := range map[string]string{MySQL: `a\\\t\n\r\0b` + "\t1\t\xff\\0\t" + `\N`, Postgres: `a\\\t\n\rb` +
		"\ttrue\t" + `\\xff00` + "\t" + `\N`} {
		text := "a\\\t\n\rb"
		if format == MySQL {
			text = "a\\\t\n\r\x00b"
		}
		var out strings.Builder
		f := newServerText(&out, format, []string{"id", "b", "x", "none"})
		row, err := client.PackRow(plainbuffer.Names{},
			&scan.Row{PrimaryKey: &tablestore.PrimaryKey{PrimaryKeys: []*tablestore.PrimaryKeyColumn{{ColumnName: "id",
				Value: text}}},
				Columns: []*tablestore.AttributeColumn{{ColumnName: "b", Value: true}, {ColumnName: "x", Value: []byte{0xff, 0}}}})
		conformance.Must(t, err)
		var fields scan.Fields
		fields.Read(row)
		conformance.Must(t, f.Write(&fields))
		conformance.Must(t, f.Flush())
		conformance.Equal(t, out.String(), want+"\n", "%s", format)
		c := w.config(format)
		var all strings.Builder
		r := conformance.Try(To(t.Context(), c, &all)).Must(t)
		conformance.Equal(t, strings.Count(all.String(), "\n"), 3, "lines")
		conformance.Equal(t, len(strings.Split(strings.SplitN(all.String(), "\n", 2)[0], "\t")),
			len(c.Columns(r.Columns)), "")
	}
	err := newServerText(io.Discard, Postgres, []string{"id"}).field(0, table.Value{Type: table.String, Bytes: []byte{0}})
	conformance.Equal(t, errors.As(err, new(*CannotHold)), true, "a zero byte in a text: %v", err)
}

func TestRowThatAFormatCannotHoldIsAnError(t *testing.T) {
	w := newWorld(t, 0)
	for _, tt := range []struct{ format, key, value string }{{CSV, "\xff", ""}, {CSV, "k", "\xff"}, {JSONL, "\xff", ""},
		{Postgres, "\x00", ""}, {Postgres, "k", "\x00"}, {Typed, "k", strings.Repeat("long", 500_000)}} {
		r := &scan.Row{PrimaryKey: &tablestore.PrimaryKey{}}
		r.PrimaryKey.AddPrimaryKeyColumn("p", int64(1))
		r.PrimaryKey.AddPrimaryKeyColumn("k", tt.key)
		for i := range int64(20) {
			r.Columns = append(r.Columns, &tablestore.AttributeColumn{ColumnName: "c", Value: tt.value, Timestamp: 99 - i})
		}
		c := w.config(tt.format)
		e := newExporter(t.Context(), &c)
		var f scan.Formatter = newServerText(io.Discard, Postgres, []string{"p", "k", "c"})
		if tt.format != Postgres {
			f = conformance.Try(e.lines(io.Discard, false)).Must(t)
		}
		err := newRowWriter(e, f, nil).row(nil, conformance.Try(client.PackRow(plainbuffer.Names{}, r)).Must(t))
		conformance.True(t, errors.As(err, new(*CannotHold)) && e.result.Rows == 0, "%s, key %q: %v", tt.format, tt.key, err)
	}
}

// small is a disk with room for some bytes.
type small struct{ room int }

func (s *small) Write(p []byte) (int, error) {
	if s.room -= len(p); s.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestExportWithoutAllRowsFails tries keys, requests, conditions and writes that fail.
func TestExportWithoutAllRowsFails(t *testing.T) {
	w := newWorld(t, 300)
	where := conformance.Try(keyexpr.CompileWhere("int(c4) > 0")).Must(t)
	fails := func(c Config, room int, want string) {
		conformance.Refused(t, conformance.ErrorOf(To(t.Context(), c, &small{room})), want, "%s, %d bytes", c.Format, room)
	}
	for _, c := range []Config{w.config(CSV), w.config(CSV, "n"), w.config(JSONL), w.config(Typed), w.config(Parquet),
		w.config(MySQL), w.config(Postgres)} {
		want := w.text(t, c)
		for _, room := range []int{0, len(want) / 2, len(want) - 1} {
			fails(c, room, errFull.Error())
		}
		c.Scan.Where = where
		fails(c, 1e6, "evaluate a row")
		c.Scan.Where, c.Keys = nil, append(firstKeys(1), nil)
		fails(c, 1e6, errFull.Error())
		c.Keys, c.Limit = firstKeys(300), 5
		conformance.Equal(t, conformance.Try(To(t.Context(), c, io.Discard)).Must(t).Rows, 5, "rows of %s", c.Format)
		w.faults.Change(func(op string) bool { return op == "BatchGetRow" },
			func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"} })
		fails(c, 1e6, "OTSAuthFailed")
		w.faults.Change(nil, nil)
	}
	mysql := w.config(MySQL)
	e := newExporter(t.Context(), &mysql)
	e.result.Rows = 1
	conformance.Refused(t, e.replay(io.Discard, strings.NewReader("")), "", "the kept rows lack one")
	c := w.archive(t.TempDir() + "/a")
	c.Scan.Where = where
	conformance.Refused(t, conformance.ErrorOf(ToArchive(t.Context(), c)), "evaluate a row", "an archive")
	conformance.Refused(t, (&output{path: c.Dir}).mark(state{}), "write output", "rows without a file were recorded")
}
