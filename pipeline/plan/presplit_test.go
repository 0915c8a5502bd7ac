package plan

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"github.com/parquet-go/parquet-go"
)

// sortedRecords returns records with the keys k00000, k00001, …, and quoted texts with line breaks.
func sortedRecords(n int) string {
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range n {
		fmt.Fprintf(&b, "k%05d,\"a \"\"text\"\",\nof two lines %d\"\n", i, i)
	}
	return b.String()
}

func sortedParquet(t *testing.T, n int) string {
	t.Helper()
	type row struct {
		ID   string `parquet:"id"`
		Text string `parquet:"text"`
	}
	var b bytes.Buffer
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{fmt.Sprintf("k%05d", i), "t"}
	}
	must(t, parquet.Write(&b, rows, parquet.MaxRowsPerRowGroup(500)))
	return b.String()
}

// TestRangesOfSortedFilesAreEven also checks that the load still reads from the beginning after the sample.
func TestRangesOfSortedFilesAreEven(t *testing.T) {
	const rows = 6_000
	var lines []string
	for i := range rows {
		lines = append(lines, fmt.Sprintf("{\"id\": \"k%05d\", \"text\": \"t\"}\n", i))
	}
	descending := slices.Clone(lines)
	slices.Reverse(descending)
	half := rows / 2
	for _, files := range [][]string{{file(t, "a.csv", sortedRecords(rows))},
		{file(t, "a.parquet", sortedParquet(t, rows))}, {file(t, "computed.csv", sortedRecords(rows))},
		{file(t, "a.ndjson", strings.Join(lines, ""))}, {file(t, "descending.ndjson", strings.Join(descending, ""))},
		{file(t, "c.ndjson", strings.Join(lines[:half], "")), file(t, "d.ndjson", strings.Join(lines[half:], ""))}} {
		r := ask(files...)
		r.Target.PreSplit = 8
		computed := strings.Contains(files[0], "computed")
		if computed {
			col := conformance.Try(keyexpr.ParseColumn("k=reverse(id)")).Must(t)
			r.Target.Key, r.Columns.Keys = []table.KeyColumn{{Name: col.Name}}, []keyexpr.Column{col}
		}
		p, first := makes(t, r, nil), ""
		must(t, p.Sample(func(row []table.Value) bool {
			first = string(row[0].Bytes)
			return false
		}))
		for i, b := range p.Bounds {
			at, err := strconv.Atoi(strings.Trim(string(b.Bytes), "k")) // the digits of a computed key are reversed
			share := float64(at) / map[bool]float64{false: rows, true: 1e5}[computed]
			conformance.True(t, err == nil && math.Abs(8*share-float64(i+1)) < 0.75, "bound %d of %s: %s", i, files[0], b.Bytes)
		}
		conformance.True(t, len(p.Bounds) == 7 && len(p.Warnings) == 0, "%d bounds; %q", len(p.Bounds), p.Warnings)
		want := map[bool]string{true: "k05999", false: "k00000"}[strings.Contains(files[0], "descending")]
		conformance.Equal(t, first, want, "the first key of %s", files[0])
	}
}

func TestRangesOfFewKeys(t *testing.T) {
	existing, tables := ask(file(t, "a.csv", "id,a\nx,1\ny,2\n")), ask(file(t, "a.csv", "id,a\nx,1\ny,2\n"))
	existing.Target.PreSplit, existing.Target.Absent = 2, false
	makes(t, existing, store(t, table.KeyColumn{Name: "id", Type: table.String}))
	tables.Target.PreSplit, tables.Target.Table = 2, "t_{id}"
	makes(t, tables, nil)
	few, integers := ask(file(t, "a.csv", "id,a\nx,1\nx,2\ny,1\n")),
		ask(file(t, "a.csv", "id,a\n-5,x\n-40,x\n3,x\n100,x\n20,x\n7,x\n"))
	few.Target.PreSplit, integers.Target.PreSplit, integers.Target.Key[0].Type = 5, 3, table.Null
	makes(t, few, nil)
	makes(t, integers, nil)
}

func TestAutomaticRangesFollowInputSize(t *testing.T) {
	for _, c := range [][2]int64{{1000, 0}, {-1, 0}, {49_999_900, 0}, {50_000_000, 0}, {125_000_000, 0}, {1 << 40, 0},
		{1 << 40, 600_000}} {
		p := &planner{plan: &Plan{Bytes: c[0]}, request: &Request{Records: c[1]}}
		p.sampled.records, p.sampled.bytes = 10, 1000
		agrees(t, fmt.Sprintf("%d bytes, --limit %d: %d ranges", c[0], c[1], p.autoRanges()))
	}
}

func text(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

// The service accepts bounds of 1 to 64 bytes, and integers other than the least and the greatest.
func TestBoundsAreValidForService(t *testing.T) {
	long := strings.Repeat("x", 62)
	whole := func(n int64) table.Value { return table.Value{Type: table.Integer, Int: n} }
	for name, values := range map[string][]table.Value{
		"long texts":                    {text("a"), text("b"), text(long + "yyy"), text(long + "zzz")},
		"a letter is not cut":           {text("a"), text(long + "x姓")},
		"long texts that begin alike":   {text(long + "xx1"), text(long + "xx2")},
		"an empty text":                 {text(""), text("b")},
		"the greatest and least number": {whole(math.MinInt64), whole(7), whole(math.MaxInt64)},
	} {
		for _, b := range rangeBounds(slices.Clone(values), len(values)) {
			name += fmt.Sprintf(", %d bytes: %d %s", len(b.Bytes), b.Int, b.Bytes)
		}
		agrees(t, name)
	}
}

// namerOf compiles a template against the columns at (text), n (integer) and shop (text).
func namerOf(text string) (*Namer, error) {
	tables, err := parseTables(text, nil)
	if err != nil {
		return nil, err
	}
	p := &planner{plan: &Plan{Tables: tables, env: keyexpr.Env{Columns: []keyexpr.Input{{Name: "at", Type: table.String},
		{Name: "n", Type: table.Integer}, {Name: "shop", Type: table.String}}}}}
	err = p.compileTables()
	return tables.NewNamer(), err
}

func TestTableNamesComeFromPeriodsAndOtherExpressions(t *testing.T) {
	row := []table.Value{text("2024-03-31 20:00:00"), {Type: table.Integer, Int: 1_711_915_200}, text("north")}
	for _, text := range []string{"t_{year(at)}", "t_{month(at)}", "t_{day(at)}_x",
		`t_{ month( at , "Asia/Shanghai" ) }`, // a text without an offset is in the zone
		`t_{day(n, "s", "Asia/Shanghai")}`, `t_{day(n, "s")}`, "{shop}_{n % 7}", "t_{upper(shop)}_{month(at)}",
		`t_{shop + "}{"[2:]}`, "t_{int(month(at)) + int(day(at))}", `{shop == "north" ? "n" : "s"}`,
		`t_{month(at ?? "2020-01-01", "UTC")}`, `t_{format_time(at, "200601")}`,
		`t_{month(substr(at, 1, 10), 'UTC')}_tail`} {
		name, archived, why := conformance.Try(namerOf(text)).Must(t).Of(row)
		agrees(t, fmt.Sprintf("%s: %s, %v, %v", text, name, archived, why))
	}
}

func TestValueUnfitForTableNameRejectsRow(t *testing.T) {
	n := conformance.Try(namerOf("{shop}_{month(at)}")).Must(t)
	day, north := text("2024-03-31"), text("north")
	for _, row := range [][2]table.Value{{day, north}, {day, text("7eleven")}, {day, text("no rth")}, {day, {}},
		{{}, north}, {text("yesterday"), north}, {day, north}} {
		name, _, why := n.Of([]table.Value{row[0], {}, row[1]})
		agrees(t, fmt.Sprintf("%s, %s: %s, %v", row[0].Bytes, row[1].Bytes, name, why))
	}
}

func TestInvalidTemplateIsRefused(t *testing.T) {
	for _, text := range []string{"t_{", "t_}", "t_{}", "t_{month}", "t-{month(at)}", "t_{month(at)}}", "t_{{month(at)}",
		"ü{shop}", "t_{nobody}", "t_{month(at, 3)}", `t_{splice(auto, shop, shop)}`} {
		conformance.Refused(t, conformance.ErrorOf(namerOf(text)), "", "%s", text)
	}
}

func TestNewTableGetsPolicyOptionsForItsAge(t *testing.T) {
	policy := conformance.Try(lifecycle.Parse("p", []byte("period: month\nclasses:\n- {up_to: 1, reserved: {write: "+
		"9}}\n- {up_to: 3, ttl: 86400, max_versions: 3}\n- {archive: /old}\n"))).Must(t)
	period := conformance.Try(lifecycle.ParseTemplate("t_{month(at)}")).Must(t)
	tables := &Tables{period: period, policy: policy, now: time.Date(2024, 6, 30, 0, 0, 0, 0, time.UTC)}
	asked := table.Definition{TimeToLive: -1, MaxVersions: 1, ReservedWrite: 1, ReservedRead: 2}
	for _, name := range []string{"t_202407", "t_202405", "t_202404", "t_202402"} {
		agrees(t, fmt.Sprintf("%s: %+v, archive %q, class %d", name, tables.definition(name, asked), tables.Archive(name),
			tables.Class(name)))
	}
	conformance.True(t, tables.maxVersions(1) == 3 && tables.Archives(), "%d versions", tables.maxVersions(1))
}

func TestTemplateMatchesTableNames(t *testing.T) {
	for _, c := range [][2]string{{"t_{month(at)}", "t_202403"}, {"t_{month(at)}", "t_20240"}, {"{shop}_x", "north_x"},
		{"{shop}_x", "_x"}, {"a_{shop}_b_{n}_c", "a_1_b_2_c"}, {"a_{shop}_b_{n}_c", "a_1_2_c"}, {"a_{shop}", "b_1"}} {
		tables := conformance.Try(parseTables(c[0], nil)).Must(t)
		if p, err := lifecycle.ParseTemplate(c[0]); err == nil {
			tables.period = p
		}
		agrees(t, fmt.Sprintf("%s, %v", c, tables.matches(c[1])))
	}
}

func TestPeriodsUsePolicyZone(t *testing.T) {
	shanghai := conformance.Try(time.LoadLocation("Asia/Shanghai")).Must(t)
	for _, text := range []string{`t_{month(x)}`, `t_{ year( x ) }`, `t_{day(x, "ms")}`,
		`t_{day(x, "ms", "Asia/Shanghai")}`, `t_{month(replace(x, "a", "UTC"))}`} {
		tables := conformance.Try(parseTables(text, &lifecycle.Policy{Zone: shanghai})).Must(t)
		agrees(t, text+" is "+tables.parts[1].expr)
	}
	policy := &lifecycle.Policy{Unit: lifecycle.Month, Zone: shanghai}
	for text, fits := range map[string]bool{`t_{month(x)}`: true, `t_{month}`: true, `t_{month(x, "Asia/Shanghai")}`: true,
		`t_{month(x, "s")}`: true, `t_{month(x, "UTC")}`: false, `t_{month(x, "s", "UTC")}`: false,
		`t_{month(x, 'UTC', "ms")}`: false} {
		template := conformance.Try(lifecycle.ParseTemplate(text)).Must(t)
		conformance.Equal(t, (policy.Fits(template) == nil), fits, "%s", text)
	}
}

func forecast(t *testing.T, r *Request) {
	t.Helper()
	p := makes(t, r, nil)
	f, err := p.Forecast(t.Context())
	last := p.Sources[len(p.Sources)-1].Name
	agrees(t, fmt.Sprintf("forecast %+v, %v, read through %v, the last input %s", f, err, p.ReadThrough(), last))
}

// wordy returns records of different lengths without repeated text.
func wordy(rows int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d,", i)
		for range random.IntN(20) {
			fmt.Fprintf(&b, "%x", random.Uint32())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	conformance.Must(t, conformance.ErrorOf(z.Write([]byte(text))))
	must(t, z.Close())
	return b.String()
}

func utf16Of(t *testing.T, text string) string {
	units := append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...)
	return string(conformance.Try(binary.Append(nil, binary.LittleEndian, units)).Must(t))
}

func TestRowCountsAreExactOrApproximate(t *testing.T) {
	text, large := wordy(500), wordy(110_000) // 9 MB, more than is sampled
	for name, in := range map[string]string{"a.csv": text, "a.csv.gz": packed(t, text), "utf16.csv": utf16Of(t, text),
		"a.parquet": sortedParquet(t, 500), "a.jsonl": strings.Repeat(`{"id":"a"}`+"\n", 500),
		"no-end.csv": strings.TrimSuffix(text, "\n"), "large.csv": large, "large.csv.gz": packed(t, large),
		"large-utf16.csv": utf16Of(t, large)} {
		forecast(t, ask(file(t, name, in)))
	}
}

func TestTruncatedFileHasNoExactCountAndLimitBoundsIt(t *testing.T) {
	whole := packed(t, wordy(2000))
	forecast(t, ask(file(t, "a.csv.gz", whole[:len(whole)*3/4])))
	for _, limit := range []int64{20, 499, 500, 501, 1000} {
		r := ask(file(t, "a.csv", wordy(500)))
		r.Records = limit
		forecast(t, r)
	}
}

func filesIn(t *testing.T, ending string, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.%s", i, ending)), []byte(text), 0o644))
	}
	return dir
}

func TestSampledFilesSpreadOverInputs(t *testing.T) {
	var texts, tables []string
	for i := range 300 {
		texts = append(texts, "id,n\n"+strings.Repeat(fmt.Sprintf("k%03d,1\n", i), 10+i%3))
	}
	for i := range 30 {
		tables = append(tables, sortedParquet(t, 5+i))
	}
	// A file that is not Parquet is assumed to have as many rows per byte as the others.
	mixed, damaged := append(tables, "id,text\na,b\n"), slices.Clone(tables)
	damaged[17] = "PAR1 and then nothing"
	for ending, texts := range map[string][]string{"csv": texts, "parquet": tables, "data": mixed, "damaged": damaged} {
		r := ask(filesIn(t, strings.Replace(ending, "damaged", "parquet", 1), texts...))
		r.MostInputs = 4
		forecast(t, r)
	}
}

func TestSampleSpreadsOverInputs(t *testing.T) {
	const rows = 100_000
	var b strings.Builder
	b.WriteString("id,n\n")
	for i := range rows {
		fmt.Fprintf(&b, "k%06d,%d\n", i, i)
	}
	p := makes(t, ask(file(t, "a.csv", b.String()), file(t, "b.csv", "id,n\nlast,1\n")), nil)
	parts, last, wholes := map[string]int{}, 0, 0
	err := p.Look(t.Context(), func(_ *Source, rec *record.Record, whole bool) bool {
		id := string(rec.Fields[0].Bytes)
		if id == "last" {
			last++
		} else if len(id) == len("k000000") {
			parts[id[:3]]++
		}
		if whole {
			wholes++
		}
		return true
	})
	conformance.True(t, err == nil && last == 1 && len(parts) == 10 && wholes == placeRecords+1,
		"%v: %d, %v, %d", err, last, parts, wholes)
}
