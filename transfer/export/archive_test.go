package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/tabletest"
	format "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/tablescan"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"
)

func everyValue() []any {
	planes := ""
	for plane := range rune(17) {
		planes += string(plane<<16 + 0x41)
	}
	return []any{int64(0), int64(math.MinInt64), int64(math.MaxInt64), int64(-1), int64(1<<53 + 1), 0.0,
		math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, -1e-7, 3.0, true, false, "", planes,
		"\x00\x1f\"\\\u2028</script>\r\n\t", strings.Repeat("é", 1000), []byte{}, []byte{0, 255}, []byte("text")}
}

// wideWorld is like newWorld, but adds a table w with wide keys, values of all types and up to five versions.
func wideWorld(t *testing.T, keys int) (*world, []table.KeyColumn) {
	w := newWorld(t, 0)
	key := []table.KeyColumn{{Name: "raw", Type: table.Binary}, {Name: "n", Type: table.Integer},
		{Name: "s", Type: table.String}, {Name: "raw2", Type: table.Binary}}[:keys]
	must(t, w.Admin.CreateDefined("w", key, table.Definition{TimeToLive: -1, MaxVersions: 5, MaxDeviation: 1e9},
		map[string]table.Type{"d": table.Double, "e": table.Binary}))
	values := everyValue()
	put := func(i int, columns func(*tablestore.PutRowChange)) {
		t.Helper()
		change := tabletest.Put("w", new(tablestore.PrimaryKey), nil)
		for n, k := range key {
			change.PrimaryKey.AddPrimaryKeyColumn(k.Name, []any{[]byte{byte(i >> 8), byte(i), 0, 255},
				int64(i) * (math.MaxInt64 / 300), fmt.Sprint("é \x00", i%7), []byte{}}[n])
		}
		columns(change)
		must(t, tabletest.Do(w.SDK, change))
	}
	now := time.Now().UnixMilli()
	for i := range 110 {
		put(i, func(c *tablestore.PutRowChange) {
			if i%11 == 10 {
				return // a row without attributes
			}
			c.AddColumnWithTimestamp("value", values[i%len(values)], now-int64(i)*1e6)
			for v := range i % 6 {
				c.AddColumnWithTimestamp("versions", values[(i+v)%len(values)], now-int64(1000*v))
			}
			c.AddColumnWithTimestamp(fmt.Sprint("列 ", i%30), int64(i), 1+now-int64(i))
		})
	}
	put(200, func(c *tablestore.PutRowChange) {
		for n := range 1024 {
			c.AddColumn(fmt.Sprintf("c%04d", n), int64(n))
		}
	})
	large := 1 << 10
	if keys == 1 {
		large = 1 << 20
	}
	put(201, func(c *tablestore.PutRowChange) {
		c.AddColumn("large", []byte(strings.Repeat("\x00\xfe", large)))
		c.AddColumn("empty", []byte{})
	})
	w.table = conformance.Try(w.Admin.Describe("w")).Must(t)
	return w, key
}

func (w *world) archive(dir string) ArchiveConfig {
	return ArchiveConfig{Scan: tablescan.Config{Client: w.SDK, Table: w.table, Ranges: 4}, Target: "test", Dir: dir,
		PartBytes: 3000}
}

// rowsOf formats the rows of an origin, in order.
func rowsOf(t *testing.T, o source.Origin) (rows []string) {
	t.Helper()
	division := conformance.Try(o.Divide(context.Background())).Must(t)
	parts := conformance.Try(o.Open(context.Background(), division)).Must(t)
	for _, p := range parts {
		parser := p.NewParser(nil)
		for {
			piece, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = piece.Prepare()
			}
			must(t, err)
			splits := conformance.Try(p.Add(piece)).Must(t)
			for _, sp := range splits {
				_, _, err := parser.Parse(sp, func(rec *record.Record) { rows = append(rows, words(rec)) })
				must(t, err)
			}
		}
		must(t, p.Close())
	}
	return rows
}

func words(rec *record.Record) string {
	if rec.Bad != nil {
		return "bad: " + rec.Bad.Message
	}
	var s strings.Builder
	show := func(d *record.Datum) {
		fmt.Fprintf(&s, "%d %d %x %q; ", d.Kind, d.Int, math.Float64bits(d.Double), d.Bytes)
	}
	for i := range rec.Fields {
		show(&rec.Fields[i])
	}
	for i := range rec.Cells {
		fmt.Fprintf(&s, "%q at %d ", rec.Cells[i].Name, rec.Cells[i].At)
		show(&rec.Cells[i].Datum)
	}
	return s.String()
}

func TestEmptyTableMakesAnArchive(t *testing.T) {
	w := newWorld(t, 0)
	dir := filepath.Join(t.TempDir(), "a")
	must(t, conformance.ErrorOf(ToArchive(context.Background(), w.archive(dir))))
	m, err := format.Read(dir)
	conformance.MustTrue(t, err == nil && m.Rows == 0 && m.Smallest == nil, "%+v, %v", m, err)
	rows := rowsOf(t, format.New(m))
	conformance.Equal(t, len(rows), 0, "%v", rows)
}

func TestArchiveHasOnlyTheRequestedVersions(t *testing.T) {
	w, _ := wideWorld(t, 2)
	c := w.archive(filepath.Join(t.TempDir(), "a"))
	c.Scan.Versions, c.Holds.Versions = 2, 2
	r := conformance.Try(ToArchive(context.Background(), c)).Must(t)
	want := rowsOf(t, tablescan.New(c.Scan))
	got := rowsOf(t, format.New(r.Manifest))
	conformance.True(t, slices.Equal(got, want) && r.Manifest.Holds.Versions == 2, "it has others")
	c.Scan.Versions = 0
	conformance.True(t, !slices.Equal(rowsOf(t, tablescan.New(c.Scan)), want), "the table has no more versions")
}

var errKilled = errors.New("killed")

// TestArchiveContinuesAfterAnyStep kills an export at each step. The same command must complete the archive.
func TestArchiveContinuesAfterAnyStep(t *testing.T) {
	w, _ := wideWorld(t, 2)
	want := rowsOf(t, tablescan.New(w.archive("").Scan))
	server := storetest.New(t, "bucket")
	for _, place := range []string{"", "s3://bucket/kept/"} {
		t.Run(place, func(t *testing.T) { continuedAfterAnyStep(t, w, want, place, server) })
	}
}

func readAt(t *testing.T, c *ArchiveConfig) (*format.Manifest, error) {
	if c.Store == nil {
		return format.Read(c.Dir)
	}
	files, err := format.Find(context.Background(), c.Store.String(), input.Options{})
	if files == nil {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	return format.ReadFrom(context.Background(), files)
}

func continuedAfterAnyStep(t *testing.T, w *world, want []string, place string, server *storetest.Server) {
	steps := map[string]bool{}
	parts := 0 // parts of a range
	for kill := 1; ; kill++ {
		c := w.archive(filepath.Join(t.TempDir(), "a"))
		if place != "" {
			for _, key := range server.Keys() {
				server.Remove(key)
			}
			c.Store = conformance.Try(jobdir.Open(context.Background(), place, jobdir.Options{})).Must(t)
		}
		c.Readers, c.PartBytes = 1, 4_000
		n, name := 0, ""
		c.step = func(step string) error {
			if n++; n >= kill {
				name = step
				return errKilled
			}
			return nil
		}
		_, err := ToArchive(context.Background(), c)
		if n < kill && err == nil {
			break
		}
		steps[name] = true
		conformance.MustTrue(t, errors.Is(err, errKilled), "killed after %q: %v", name, err)
		m, err := readAt(t, &c)
		conformance.MustTrue(t, (err == nil) == (name == "manifest written") && (place != "" || format.Is(c.Dir)),
			"killed after %q: the manifest is %v, %v", name, m, err)
		if err != nil {
			c.step = nil
			r, err := ToArchive(context.Background(), c)
			conformance.MustTrue(t, err == nil, "killed after %q: %v", name, err)
			conformance.True(t, name != "part noted" || r.Resumed != 0, "killed after %q nothing was kept", name)
			m = conformance.Try(readAt(t, &c)).Must(t)
			for _, key := range server.Keys() {
				conformance.True(t, place == "" || format.IsPart(path.Base(key)) || path.Base(key) == format.ManifestName ||
					strings.Contains(key, "/lease."), "killed after %q: %s is left", name, key)
			}
		}
		parts = max(parts, len(m.Parts)-len(m.Ranges)+1)
		if got := rowsOf(t, format.New(m)); !slices.Equal(got, want) {
			t.Fatalf("killed after %q it has %d rows, want %d, or others", name, len(got), len(want))
		}
	}
	for _, name := range []string{"journal begun", "part written", "part named", "part noted", "before the manifest",
		"manifest written"} {
		conformance.True(t, steps[name], "it was never killed after %q", name)
	}
	conformance.True(t, parts >= 3, "a range had %d parts", parts)
}

func TestInterruptedArchiveOfAnotherTableIsNotContinued(t *testing.T) {
	w, key := wideWorld(t, 2)
	interrupted := func() ArchiveConfig {
		c := w.archive(filepath.Join(t.TempDir(), "a"))
		c.step = func(step string) error {
			if step == "part noted" {
				return errKilled
			}
			return nil
		}
		_, err := ToArchive(context.Background(), c)
		conformance.MustTrue(t, errors.Is(err, errKilled), "%v", err)
		c.step = nil
		return c
	}
	c := interrupted()
	c.Holds.Versions, c.Scan.Versions = 1, 1
	var changed *format.ChangedError
	if _, err := ToArchive(context.Background(), c); !errors.As(err, &changed) ||
		!strings.Contains(err.Error(), "--versions") {
		t.Errorf("with other flags: %v", err)
	}

	c = interrupted()
	must(t, errors.Join(w.Admin.Drop("w"), w.Admin.Create("w", key, w.table.Definition)))
	conformance.Refused(t, conformance.ErrorOf(ToArchive(context.Background(), c)), "",
		"it continued although the table was replaced")
	c.Scan.Table = conformance.Try(w.Admin.Describe("w")).Must(t)
	if _, err := ToArchive(context.Background(), c); !errors.As(err, &changed) ||
		!strings.Contains(err.Error(), "the time at which the table was made was ") {
		t.Errorf("of a table that was made again: %v", err)
	}
	c.Fresh = true
	r, err := ToArchive(context.Background(), c)
	conformance.True(t, err == nil && r.Manifest.Rows == 0, "%+v, %v", r, err)
}

func TestArchiveNeedsItsOwnFolder(t *testing.T) {
	w := newWorld(t, 1)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o600))
	var occupied *format.OccupiedError
	for _, fresh := range []bool{false, true} {
		c := w.archive(dir)
		c.Fresh = fresh
		_, err := ToArchive(context.Background(), c)
		conformance.True(t, errors.As(err, &occupied), "fresh %t: %v", fresh, err)
	}
	left, err := os.ReadDir(dir)
	conformance.True(t, err == nil && len(left) == 1, "%v %v", left, err)
}

// flaky is a store in which the nth call of each kind fails, either before or after it takes effect.
type flaky struct {
	jobdir.Store
	after bool
	nth   int
	mu    sync.Mutex
	asked map[string]int // number of calls by kind
}

var (
	errStore = errors.New("the store does not answer")
	digits   = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)
)

func (f *flaky) act(verb, name string, do func() error) error {
	kind := verb + " " + digits.ReplaceAllString(name, "N")
	f.mu.Lock()
	f.asked[kind]++
	nth := f.asked[kind]
	f.mu.Unlock()
	fails := nth == f.nth && !strings.Contains(name, "/lease.") // an export waits for a lease that was not released
	if fails && !f.after {
		return errStore
	}
	err := do()
	if fails {
		return errors.Join(err, errStore)
	}
	return err
}

func (f *flaky) PutAbsent(ctx context.Context, name string, body []byte) error {
	return f.act("put", name, func() error { return f.Store.PutAbsent(ctx, name, body) })
}

func (f *flaky) Put(ctx context.Context, name string, body []byte) error {
	return f.act("replace", name, func() error { return f.Store.Put(ctx, name, body) })
}

func (f *flaky) Get(ctx context.Context, name string) (body []byte, err error) {
	err = f.act("get", name, func() (err error) { body, err = f.Store.Get(ctx, name); return err })
	return body, err
}

func (f *flaky) List(ctx context.Context, prefix string) (names []string, err error) {
	err = f.act("list", prefix, func() (err error) { names, err = f.Store.List(ctx, prefix); return err })
	return names, err
}

func (f *flaky) Delete(ctx context.Context, name string) error {
	return f.act("delete", name, func() error { return f.Store.Delete(ctx, name) })
}

// TestArchiveIsCompleteDespiteStoreFaults repeats an export until it succeeds.
func TestArchiveIsCompleteDespiteStoreFaults(t *testing.T) {
	for i := range 6 {
		after, nth := i%2 == 1, 1+i/2
		t.Run(fmt.Sprintf("after %v, %d", after, nth), func(t *testing.T) {
			w, _ := wideWorld(t, 2)
			want := rowsOf(t, tablescan.New(w.archive("").Scan))
			c := w.archive("")
			dir := filepath.Join(t.TempDir(), "a")
			c.Readers, c.PartBytes = 1, 4_000
			store, err := jobdir.Open(t.Context(), dir, jobdir.Options{})
			must(t, err)
			f := &flaky{Store: store, after: after, nth: nth, asked: map[string]int{}}
			c.Store = f
			ended := 0
			for _, err = ToArchive(t.Context(), c); err != nil && ended < 50; _, err = ToArchive(t.Context(), c) {
				ended++
				if occupied := new(format.OccupiedError); errors.As(err, &occupied) {
					break // the archive is complete; a call after the manifest was put has failed
				}
				conformance.Is(t, err, errStore, "after %v", f.asked)
			}
			exported := err
			m := conformance.Try(format.Read(dir)).Must(t)
			got := rowsOf(t, format.New(m))
			conformance.Same(t, got, want, "after %d errors it has %d rows, want %d, or others", ended, len(got), len(want))
			names, wrong := store.List(t.Context(), "")
			if left := slices.DeleteFunc(names, func(name string) bool {
				return !strings.Contains(name, "/entry-")
			}); wrong != nil || exported == nil && len(left) > 0 {
				t.Errorf("an export that says nothing leaves %q, %v", left, wrong)
			}
			conformance.True(t, len(f.asked) >= 10 && ended >= 4-nth, "%v failed, %d of them ended the export", f.asked, ended)
		})
	}
}

// drawnRows draws rows as in responses, with absent or unordered columns, unordered versions and strings of all kinds.
func drawnRows(t *rapid.T) (rows [][]byte) {
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "x", "a,b", "\"", "\"\"\n", "\r\n", "\r",
		"seven..", "eight...", "eight..,", "nine....\"", "é", "12345678é", "\x00",
		"two\nlines, and a \"quote\""}), rapid.SampledFrom([]string{"\xff", "12345678\xed\xa0\x80", "é\xc3"}))
	value := rapid.Custom(func(t *rapid.T) table.Value {
		switch rapid.SampledFrom([]table.Type{table.Integer, table.Double, table.Boolean, table.String, table.Binary}).Draw(t,
			"type") {
		case table.Integer:
			return table.Value{Type: table.Integer, Int: rapid.OneOf(rapid.Int64(),
				rapid.SampledFrom([]int64{0, -1, math.MinInt64, math.MaxInt64})).Draw(t, "integer")}
		case table.Double:
			return table.Value{Type: table.Double, Double: rapid.OneOf(rapid.Float64(),
				rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1),
					1e21, 1e-7, 0.1, 5e-324, math.MaxFloat64})).Draw(t, "double")}
		case table.Boolean:
			return table.Value{Type: table.Boolean, Int: int64(rapid.IntRange(0, 1).Draw(t, "boolean"))}
		case table.String:
			return table.Value{Type: table.String, Bytes: []byte(texts.Draw(t, "text"))}
		}
		return table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes")}
	})
	// In most draws all names are UTF-8, so that text formats have rows after the first.
	names := []string{"a", "b,c", "\"d\"", "e\nf", "g", "z", ""}
	if rapid.IntRange(0, 5).Draw(t, "odd names") == 0 {
		names = append(names, "\xff")
	}
	sorted := rapid.Bool().Draw(t, "sorted")
	key, number := plainbuffer.NewName("k"), plainbuffer.NewName("n")
	for i := range rapid.IntRange(0, 12).Draw(t, "rows") {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(&key, table.Value{Type: table.String, Bytes: []byte(rapid.SampledFrom([]string{"", "a\"b", "c", "d", "e"}).Draw(
			t, "key"))})
		r.Key(&number, table.Value{Type: table.Integer, Int: int64(i)})
		columns := rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(t, "columns")
		if sorted {
			slices.Sort(columns)
		}
		for _, c := range columns {
			name := plainbuffer.NewName(c)
			if at := rapid.Int64Range(-1, 3).Draw(t, "timestamp"); at < 0 {
				r.Cell(&name, value.Draw(t, "value"))
			} else {
				r.CellAt(&name, value.Draw(t, "value"), at)
			}
		}
		rows = append(rows, plainbuffer.WithoutHeader(r.End()))
	}
	return rows
}

// madeCSV returns the expected text, result and error of an export of the rows.
func madeCSV(t *rapid.T, c *Config, rows [][]byte) (text string, r Result, failed string) {
	var lines []map[string]string
	types, quoted := map[string]map[string]int64{}, func(v any) string {
		text := ""
		switch v := v.(type) {
		case string:
			if text = v; v == "" || strings.ContainsAny(v, ",\"\r\n") || strings.HasPrefix(v, "\ufeff") {
				text = `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
			}
		case []byte:
			if text = base64.StdEncoding.EncodeToString(v); len(v) == 0 {
				text = `""`
			}
		case float64:
			text = string(table.AppendDouble(nil, v))
		default:
			text = fmt.Sprint(v)
		}
		return text
	}
	for _, row := range rows {
		made := conformance.Try(new(client.PageMemory).Unpack(row)).Must(t)
		if n := made.PrimaryKey.PrimaryKeys[1].Value; c.Scan.Where != nil && n == int64(2) {
			r.LeftOut++
			continue
		}
		line := map[string]string{}
		for _, k := range made.PrimaryKey.PrimaryKeys {
			line["key "+k.ColumnName] = quoted(k.Value)
		}
		newest, older := map[string]*tablestore.AttributeColumn{}, int64(0)
		for _, cell := range made.Columns {
			before := newest[cell.ColumnName]
			switch {
			case c.Scan.Columns != nil && !slices.Contains(c.Scan.Columns, cell.ColumnName):
			case before == nil:
				newest[cell.ColumnName] = cell
			default:
				if older++; cell.Timestamp > before.Timestamp {
					newest[cell.ColumnName] = cell
				}
			}
		}
		for name, cell := range newest {
			if s, is := cell.Value.(string); is && !(utf8.ValidString(s) && utf8.ValidString(name)) {
				return "", r, "is not UTF-8"
			}
			line[name] = quoted(cell.Value)
		}
		for name, cell := range newest {
			if types[name] == nil {
				types[name] = map[string]int64{}
			}
			types[name][client.ValueOf(cell.Value).Type.String()]++
		}
		r.Lost.Timestamps, r.Lost.OlderVersions = r.Lost.Timestamps+int64(len(newest)), r.Lost.OlderVersions+older
		lines = append(lines, line)
		if r.Rows++; r.Rows == c.Limit {
			break
		}
	}
	columns := slices.Concat([]string{"key k", "key n"}, c.Scan.Columns)
	r.Columns = []Column{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		column := Column{name, types[name]}
		r.Columns, r.Lost.Types = append(r.Columns, column), r.Lost.Types+column.Others()
		if c.Scan.Columns == nil {
			columns = append(columns, name)
		}
	}
	var out strings.Builder
	for i, name := range columns {
		out.WriteString(strings.Repeat(",", min(i, 1)) + quoted(strings.TrimPrefix(name, "key ")))
	}
	for _, line := range lines {
		for i, name := range columns {
			out.WriteString([]string{"\n", ","}[min(i, 1)] + line[name])
		}
	}
	return out.String() + "\n", r, ""
}

// TestRawRowsMakeTheSameCSV covers requested columns and columns found while rows are written.
func TestRawRowsMakeTheSameCSV(t *testing.T) {
	condition := conformance.Try(keyexpr.CompileWhere("n != 2")).Must(t)
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		rows := drawnRows(t)
		c := Config{Format: CSV, Limit: int64(rapid.IntRange(0, 15).Draw(t, "limit"))}
		c.Scan.Table = &client.Table{Key: []table.KeyColumn{{Name: "k", Type: table.String},
			{Name: "n", Type: table.Integer}}}
		if rapid.Bool().Draw(t, "columns are named") {
			c.Scan.Columns = rapid.Permutation([]string{"a", "z", "\"d\"", "never"}).Draw(t, "which")
		}
		if rapid.Bool().Draw(t, "with a condition") {
			c.Scan.Where = condition
		}
		held := rapid.Bool().Draw(t, "rows are held back")
		e := newExporter(t.Context(), &c)
		var file, got bytes.Buffer
		f, err := e.lines(&file, false)
		if e.grows() {
			f, err = e.spool(&file, nil)
		}
		must(t, err)
		w := newRowWriter(e, f, nil)
		for i, row := range rows {
			if i == 1 && !held {
				must(t, f.Flush()) // determines the columns of the first section
			}
			if err = w.row(table.AppendKey(nil, table.Value{Type: table.Integer, Int: int64(i)}), row); err != nil {
				break
			}
		}
		must(t, f.Flush())
		want, result, failed := madeCSV(t, &c, rows)
		if failed != "" {
			if refused++; err == nil || !strings.Contains(err.Error(), failed) {
				t.Fatalf("%v, want %s", err, failed)
			}
			return
		}
		conformance.MustTrue(t, err == nil || errors.Is(err, errEnough), "%v", err)
		if got = file; e.grown != nil && result.Rows > 0 {
			got.Reset()
			must(t, e.replay(&got, bytes.NewReader(file.Bytes())))
		}
		said := e.ended()
		conformance.MustTrue(t, reflect.DeepEqual(said, result), "it says %+v, want %+v", said, result)
		if result.Rows > 0 {
			conformance.MustEqual(t, got.String(), want, "text")
		}
	})
	conformance.True(t, refused != 0, "no text was refused")
}
