package parquet

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

// fixed is the advice if parquet-go reads one of the files in mistaken correctly.
const fixed = `parquet-go no longer reads this file wrongly. Once it reads all files of "Reports for parquet-go" in ` +
	`testdata/README.md rightly, see there whether its pages can take the place of ours`

// mistaken lists files of which parquet-go 0.32.0 reads wrong values without an error.
var mistaken = map[string]string{
	// Arrow's own test of this file states the first value.
	"lz4_raw_compressed_larger.parquet": `"c7ce6bef-d5b0-4863-b199-8ea8c7fb117b", parquet-go has ""`,
	// The body of the page is 02000000 18 01: a run of twelve values, all true.
	"complex.parquet": "completed: 1, parquet-go has 0",
}

// TestParquetGoReadsTheSameEntries compares the levels and value of every entry of every leaf with parquet-go, for all
// files that parquet-go can read.
func TestParquetGoReadsTheSameEntries(t *testing.T) {
	dir := conformance.Dir(t)
	var same, silent, entries int
	for _, e := range files(t, dir) {
		if e.Expected != "ok" {
			continue
		}
		n, theirs, ours := compare(conformance.Read(t, dir, e.Path), e.Path)
		switch {
		case mistaken[filepath.Base(e.Path)] != "":
			conformance.True(t, ours != nil && strings.Contains(ours.Error(), mistaken[filepath.Base(e.Path)]),
				"%s: %v, %v: %s", e.Path, theirs, ours, fixed)
		case theirs != nil:
			silent++
			t.Logf("parquet-go cannot say: %s: %v", e.Path, theirs)
		case ours != nil:
			t.Errorf("%s: %v", e.Path, ours)
		default:
			same++
			entries += n
		}
	}
	conformance.True(t, same >= 150, "only %d files could be compared", same)
	t.Logf("%d files with %d entries are the same, on %d parquet-go has no opinion", same, entries, silent)
}

func compare(b []byte, name string) (n int, theirs, ours error) {
	defer func() {
		if p := recover(); p != nil {
			theirs = fmt.Errorf("panic: %v", p)
		}
	}()
	f, err := Open(bytes.NewReader(b), int64(len(b)), name, Options{})
	if err != nil {
		return 0, nil, err
	}
	g, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)), pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return 0, err, nil
	}
	for i, group := range g.RowGroups() {
		if group.NumRows() == 0 {
			continue
		}
		for k, chunk := range group.ColumnChunks() {
			c := newColumn(f.leaves[k], &Parser{file: f})
			if err := c.open(bytes.NewReader(b), &f.footer.groups[i].columns[k], f.footer.start); err != nil {
				return n, nil, err
			}
			m, theirs, ours := compareChunk(c, chunk)
			if n += m; theirs != nil || ours != nil {
				return n, theirs, ours
			}
		}
	}
	return n, nil, nil
}

func compareChunk(c *column, chunk pq.ColumnChunk) (n int, theirs, ours error) {
	pages := chunk.Pages()
	defer pages.Close()
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failure:
			ours = x.error
		default:
			panic(x)
		}
	}()
	values := make([]pq.Value, 100)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err, nil
		}
		for r := page.Values(); ; {
			m, err := r.ReadValues(values)
			for _, v := range values[:m] {
				c.need(errShortColumn)
				if ours := same(c, v); ours != nil {
					return n, nil, fmt.Errorf("entry %d of column %s: %w", n, c.leaf.path, ours)
				}
				n++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return n, err, nil
			}
		}
	}
	return n, nil, c.done()
}

func same(c *column, v pq.Value) error {
	rep, def := int(c.reps[c.at]), int(c.defs[c.at])
	i := c.next()
	if rep != v.RepetitionLevel() || def != v.DefinitionLevel() {
		return fmt.Errorf("levels %d %d, parquet-go has %d %d", rep, def, v.RepetitionLevel(), v.DefinitionLevel())
	}
	if i < 0 || v.IsNull() {
		if i >= 0 && c.leaf.ann != annNull {
			return fmt.Errorf("a value where parquet-go has none")
		}
		return nil
	}
	if c.values.bins != nil {
		theirs := v.ByteArray()
		if v.Kind() == pq.Int96 {
			theirs = nil
			for _, word := range v.Int96() {
				theirs = append(theirs, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
			}
		}
		if !bytes.Equal(theirs, c.values.bins[i]) {
			return fmt.Errorf("%q, parquet-go has %q", c.values.bins[i], theirs)
		}
		return nil
	}
	theirs := int64(0)
	switch v.Kind() {
	case pq.Boolean:
		if v.Boolean() {
			theirs = 1
		}
	case pq.Int32, pq.Float:
		theirs = int64(v.Int32())
	default:
		theirs = v.Int64()
	}
	if theirs != c.values.ints[i] {
		return fmt.Errorf("%d, parquet-go has %d", c.values.ints[i], theirs)
	}
	return nil
}

// files returns the Parquet files in a collection.
func files(t testing.TB, dir string) []conformance.File {
	t.Helper()
	return slices.DeleteFunc(conformance.Files(t, dir), func(f conformance.File) bool { return f.Format != "parquet" })
}

// loadAll reads all columns of a file. It returns the number of rows, and how many of them are bad.
func loadAll(b []byte, name string, o Options, each func(*record.Record)) (rows, bad int64, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), name, o)
	if err != nil {
		return 0, 0, err
	}
	p := f.NewParser(every(f))
	defer p.Close()
	for _, s := range f.Splits() {
		err := p.Parse(s, func(r *record.Record) error {
			rows++
			if r.Bad != nil {
				bad++
			}
			if each != nil {
				each(r)
			}
			return nil
		})
		if err != nil {
			return rows, bad, err
		}
	}
	if rows != f.Rows() {
		return rows, bad, fmt.Errorf("delivered %d rows of %d without an error", rows, f.Rows())
	}
	return rows, bad, nil
}

func every(f *File) []int {
	all := make([]int, len(f.Columns()))
	for i := range all {
		all[i] = i
	}
	return all
}

// show formats a value for comparisons.
func show(d *record.Datum) string {
	if d.Kind == record.String {
		return fmt.Sprintf("%q", d.Bytes)
	}
	return string(jsontext.Append(nil, d))
}

func TestFilesOfOtherWritersHaveStatedValues(t *testing.T) {
	for name, want := range map[string]struct {
		rows  int
		first []string // values of the first record
		err   string
	}{
		"dict-page-offset-zero":       {rows: 39, first: []string{"1552", "1552"}},
		"fixed_length_decimal_legacy": {rows: 24, first: []string{"1.00", "2.00", "3.00"}},
		"int96_from_spark": {rows: 6, first: []string{`"2024-01-01T20:34:56.123456"`, `"2024-01-01T01:00:00"`,
			`"9999-12-31T03:00:00"`, `"2024-12-30T23:00:00"`, "null", "OutOfRange"}},
		"nested_lists.snappy": {rows: 3, first: []string{`[[["a","b"],["c"]],[null,["d"]]] 1`}},
		"repeated_no_annotation": {rows: 6, first: []string{"1 null", "2 null", `3 {"phone":[]}`,
			`4 {"phone":[{"number":5555555555,"kind":null}]}`}},
		"datapage_v2_empty_datapage.snappy": {rows: 1, first: []string{"null"}},
		"rle_boolean_encoding":              {rows: 68, first: []string{"true", "false", "null", "true"}},
		"upstream_rle_booleans":             {rows: 12, first: slices.Repeat([]string{"true"}, 12)},
		"upstream_lz4_raw":                  {rows: 1, first: []string{`"` + strings.Repeat("YWFh", 1356/3) + `"`}},
		"upstream_short_page":               {err: "page holds fewer values than its header says"},
		"ARROW-RS-GH-6229-LEVELS":           {err: "row group 0: column outer.list.item.c: page 1:"},
	} {
		t.Run(name, func(t *testing.T) {
			b := conformance.Read(t, "testdata", name+".parquet")
			var got []string
			rows, _, err := loadAll(b, name, Options{}, func(r *record.Record) {
				var cells []string
				for i := range r.Fields {
					if d := &r.Fields[i]; d.Kind == record.JSON {
						cells = append(cells, string(d.Bytes))
					} else {
						cells = append(cells, show(d))
					}
				}
				if r.Bad != nil {
					cells = []string{r.Bad.Code}
				}
				got = append(got, strings.Join(cells, " "))
			})
			if want.err != "" {
				conformance.Refused(t, err, want.err, "error")
				return
			}
			conformance.True(t, err == nil && int(rows) == want.rows, "%d rows: %v", rows, err)
			conformance.Equal(t, cmp.Diff(want.first, got[:min(len(got), len(want.first))]), "", "(-want +got)")
		})
	}
}

// TestHybridCalendarAgreesWithSpark compares with the table in Spark's RebaseDateTime and the dates in its tests.
func TestHybridCalendarAgreesWithSpark(t *testing.T) {
	switches := []int64{-719164, -682945, -646420, -609895, -536845, -500320, -463795, -390745, -354220, -317695, -244645,
		-208120, -171595, -141427}
	diffs := []int64{2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0}
	for day := switches[0]; day < firstGregorian; day++ {
		at, found := slices.BinarySearch(switches, day)
		if !found {
			at--
		}
		conformance.MustEqual(t, gregorian(day), day+diffs[at], "day %d", day)
	}
	for day, want := range map[int64]string{-141428: "1582-10-04", -719164: "0001-01-01", -719165: "0000-12-31",
		-719163 - 366: "0000-01-02", -244646: "1300-02-29 is 03-01"} {
		got := time.Unix(gregorian(day)*secondsOfDay, 0).UTC().Format(time.DateOnly)
		conformance.True(t, (got == want || want[5:10] == "02-29") && (want[5:10] != "02-29" || got == "1300-03-01"),
			"day %d is %s, want %s", day, got, want)
	}
	// Four hundred Julian years are three days longer than Gregorian ones.
	for _, day := range []int64{-5_000_000, -719_470, -300_000} {
		conformance.Equal(t, gregorian(day-146_100*10_000), gregorian(day)-146_097*10_000, "day %d", day)
	}
}

// TestSparksOldCalendarKeepsWrittenDates covers every storage type of a time, every footer key and every zone.
func TestSparksOldCalendarKeepsWrittenDates(t *testing.T) {
	const noDate, day, hour = -719164, 86400, 3600
	int96 := func(days, seconds int64) pq.Value {
		nanos := uint64(seconds) * 1e9
		return pq.Int96Value(deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(days + julianEpoch)})
	}
	date, micros, millis := pq.Date(), pq.Timestamp(pq.Microsecond), pq.Timestamp(pq.Millisecond)
	local := pq.TimestampAdjusted(pq.Microsecond, false)
	const version, zone, legacy, legacy96 = sparkPrefix + "version", sparkPrefix + "timeZone", sparkPrefix +
		"legacyDateTime", sparkPrefix + "legacyINT96"
	const row = sparkPrefix + "sql.parquet.row.metadata"
	old := []string{version, "2.4.8", zone, "UTC"}
	utc := pq.Leaf(pq.Int96Type)
	shift, shanghai := int64(2*day), []string{version, "2.4.8", zone, "Asia/Shanghai"}
	for name, c := range map[string]struct {
		keys []string
		node pq.Node
		v    pq.Value
		want int64 // shift of the value in seconds, or isRefused
	}{
		"a date":               {old, date, pq.Int32Value(noDate), shift},
		"a date, unknown zone": {old[:2], date, pq.Int32Value(noDate), shift},
		"the last Julian day":  {old, date, pq.Int32Value(firstGregorian - 1), -10 * day},
		"the first Gregorian":  {old, date, pq.Int32Value(firstGregorian), 0},
		"microseconds":         {old, micros, pq.Int64Value(noDate*day*1e6 + 1), shift},
		"milliseconds":         {old, millis, pq.Int64Value(noDate*day*1e3 + hour), shift},
		"before day 1 of 1":    {old, micros, pq.Int64Value(noDate*day*1e6 - 1), shift},
		"INT96":                {old, utc, int96(noDate, hour), shift},
		"a local time":         {old, local, pq.Int64Value(noDate * day * 1e6), 0},
		"an integer":           {old, pq.Int(32), pq.Int32Value(noDate), 0},
		"another zone":         {shanghai, micros, pq.Int64Value(year1900*day*1e6 - 1), isRefused},
		"another zone in 1900": {shanghai, micros, pq.Int64Value(year1900 * day * 1e6), 0},
		"a time, unknown zone": {old[:2], micros, pq.Int64Value(noDate * day * 1e6), isRefused},
		"INT96, unknown zone":  {old[:2], utc, int96(noDate, 0), isRefused},
		"INT96 of today":       {old[:2], utc, int96(20000, 0), 0},
		"the first of 64 bits": {old, micros, pq.Int64Value(-1 << 63), 2180 * day},
		"Spark 3":              {[]string{version, "3.0.0"}, date, pq.Int32Value(noDate), 0},
		"legacy mode":          {[]string{version, "3.5.1", legacy, ""}, date, pq.Int32Value(noDate), shift},
		"legacy INT96 alone": {[]string{version, "3.5.1", legacy96, "", zone, "UTC"}, micros,
			pq.Int64Value(noDate * day * 1e6), 0},
		"legacy INT96":        {[]string{version, "3.5.1", legacy96, "", zone, "Etc/UTC"}, utc, int96(noDate, 0), shift},
		"INT96 of Spark 3.0":  {[]string{version, "3.0.3", zone, "UTC"}, utc, int96(noDate, 0), shift},
		"INT96 of Spark 3.1":  {[]string{version, "3.1.0", zone, "UTC"}, utc, int96(noDate, 0), 0},
		"Spark by parquet-mr": {[]string{row, "{}", "writer", ""}, date, pq.Int32Value(noDate), shift},
		"Spark by another":    {[]string{row, "{}"}, date, pq.Int32Value(noDate), 0},
		"not Spark's":         {nil, date, pq.Int32Value(noDate), 0},
	} {
		var options []pq.WriterOption
		for i := 0; i < len(c.keys); i += 2 {
			if c.keys[i] == "writer" {
				options = append(options, pq.CreatedBy("parquet-mr", "1.8.2", "x"))
				continue
			}
			options = append(options, pq.KeyValueMetadata(c.keys[i], c.keys[i+1]))
		}
		read := func(options ...pq.WriterOption) (d, text record.Datum, bad [2]*table.Reason) {
			b := write(t, pq.NewSchema("s", pq.Group{"c": c.node}), []pq.Row{{c.v.Level(0, 0, 0)}}, options...)
			_, _, err := loadAll(b, "x", Options{}, func(r *record.Record) { d, bad[0] = r.Fields[0], r.Bad })
			must(t, err)
			b = write(t, pq.NewSchema("s", pq.Group{"c": pq.Group{"n": c.node}}), []pq.Row{{c.v.Level(0, 0, 0)}}, options...)
			_, _, err = loadAll(b, "x", Options{}, func(r *record.Record) {
				text, bad[1] = r.Fields[0], r.Bad
				text.Bytes = slices.Clone(text.Bytes)
			})
			must(t, err)
			return d, text, bad
		}
		plain, _, _ := read()
		got, nested, bad := read(options...)
		if c.want == isRefused {
			conformance.True(t, bad[0] != nil && bad[0].Column == "c" && bad[1] != nil && bad[1].Column == "c.n", "%v", bad)
			conformance.True(t, got.Kind == record.String && !strings.HasPrefix(string(nested.Bytes), `{"n":"0000-`),
				"%s: the reject is %+v, nested %s: a wrong time that can be loaded", name, got, nested.Bytes)
			continue
		}
		unit := max(int64(plain.Unit), 1)
		if plain.Kind == record.Date {
			plain.Int, got.Int = plain.Int*day, got.Int*day
		}
		conformance.True(t, bad[0] == nil && bad[1] == nil && got.Int-plain.Int == c.want*unit, "%s: %v, %v", name, got, bad)
		conformance.True(t, c.want != shift || name == "before day 1 of 1" ||
			fmt.Sprintf("%.16s", nested.Bytes) == `{"n":"0001-01-01`, "%s, nested: %s", name, nested.Bytes)
	}
}

const isRefused = 1 << 40
