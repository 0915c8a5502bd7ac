package plan

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// sortedRecords are records with the keys k00000, k00001, …, whose texts have line breaks in quotes.
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
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(500))
	for i := range n {
		if _, err := w.Write([]row{{fmt.Sprintf("k%05d", i), "t"}}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	return b.String()
}

// shares are how many of the keys are in each of the ranges.
func shares(keys []string, bounds []table.Value) []int {
	parts := make([]int, len(bounds)+1)
	for _, k := range keys {
		n, found := slices.BinarySearchFunc(bounds, k, func(b table.Value, k string) int { return strings.Compare(string(b.Bytes), k) })
		if found {
			n++
		}
		parts[n]++
	}
	return parts
}

func TestRangesOfSortedFilesHoldAboutAsManyRows(t *testing.T) {
	const rows = 6_000
	var keys, reversed, lines []string
	for i := range rows {
		k := fmt.Sprintf("k%05d", i)
		turned := []byte(k)
		slices.Reverse(turned)
		keys, reversed = append(keys, k), append(reversed, string(turned))
		lines = append(lines, fmt.Sprintf("{\"id\": %q, \"text\": \"t\"}\n", k))
	}
	descending := slices.Clone(lines)
	slices.Reverse(descending)
	half := rows / 2
	for name, test := range map[string]struct {
		files, keys []string
		pk          string
	}{
		"CSV":                 {[]string{file(t, "a.csv", sortedRecords(rows))}, keys, ""},
		"a computed key":      {[]string{file(t, "b.csv", sortedRecords(rows))}, reversed, "k=reverse(id)"},
		"JSON lines":          {[]string{file(t, "a.ndjson", strings.Join(lines, ""))}, keys, ""},
		"descending":          {[]string{file(t, "b.ndjson", strings.Join(descending, ""))}, keys, ""},
		"Parquet":             {[]string{file(t, "a.parquet", sortedParquet(t, rows))}, keys, ""},
		"one after the other": {[]string{file(t, "c.ndjson", strings.Join(lines[:half], "")), file(t, "d.ndjson", strings.Join(lines[half:], ""))}, keys, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(test.files...)
			r.Target.PreSplit = 8
			if test.pk != "" {
				col, err := keyexpr.ParseColumn(test.pk)
				must(t, err)
				r.Target.Key, r.Columns.Keys = []table.KeyColumn{{Name: col.Name}}, []keyexpr.Column{col}
			}
			p := makes(t, r, nil)
			parts := shares(test.keys, p.Bounds)
			if len(parts) != 8 || slices.Min(parts) < rows/8*2/3 || slices.Max(parts) > rows/8*3/2 {
				t.Errorf("the ranges hold %d", parts)
			}
			if len(p.Warnings) > 0 {
				t.Errorf("warned: %q", p.Warnings)
			}
			// The load reads from the beginning, regardless of what was looked at.
			first := ""
			if err := p.Sample(func(row []table.Value) bool {
				first = string(row[0].Bytes)
				return false
			}); err != nil {
				t.Fatal(err)
			}
			if want := test.keys[0]; first != want && name != "descending" && test.pk == "" {
				t.Errorf("the first record is %q, want %q", first, want)
			}
		})
	}
}

func TestRangesOfIntegersAreInTheirOrder(t *testing.T) {
	r := ask(file(t, "a.csv", "id,a\n-5,x\n-40,x\n3,x\n100,x\n20,x\n7,x\n"))
	r.Target.Key = []table.KeyColumn{{Name: "id"}}
	r.Target.PreSplit = 3
	var got []int64
	for _, b := range makes(t, r, nil).Bounds {
		got = append(got, b.Int)
	}
	conformance.Same(t, got, []int64{3, 20}, "bounds")
}

func TestWhatNeedsNoRangesBeginsWithOne(t *testing.T) {
	existing, tables := ask(file(t, "a.csv", "id,a\nx,1\ny,2\n")), ask(file(t, "a.csv", "id,a\nx,1\ny,2\n"))
	existing.Target.PreSplit, existing.Target.Absent = 2, false
	if p := makes(t, existing, store(t, table.KeyColumn{Name: "id", Type: table.String})); p.Bounds != nil {
		t.Errorf("the table exists: %d bounds", len(p.Bounds))
	}
	tables.Target.PreSplit, tables.Target.Table = 2, "t_{id}"
	if p := makes(t, tables, nil); p.Bounds != nil {
		t.Errorf("several tables: %d bounds", len(p.Bounds))
	}
	few := ask(file(t, "a.csv", "id,a\nx,1\nx,2\ny,1\n"))
	few.Target.PreSplit = 5
	conformance.Equal(t, len(makes(t, few, nil).Bounds), 1, "two values of the key: bounds")
}

func TestAutomaticRangesFollowTheSizeOfTheInputs(t *testing.T) {
	for _, test := range []struct {
		bytes, limit int64
		want         int
	}{{1000, 0, 0}, {-1, 0, 0}, {49_999_900, 0, 1}, {50_000_000, 0, 2}, {125_000_000, 0, 5}, {1 << 40, 0, client.MaxRanges}, {1 << 40, 600_000, 2}} {
		p := &planner{plan: &Plan{Bytes: test.bytes}, request: &Request{Records: test.limit}}
		p.sampled.records, p.sampled.bytes = 10, 1000
		conformance.Equal(t, p.autoRanges(), test.want, "%d bytes, --limit %d: ranges", test.bytes, test.limit)
	}
}

func text(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

// The service takes bounds of at most 64 bytes, none that is empty, and no integer at an end of all of them.
func TestBoundsAreThoseThatTheServiceTakes(t *testing.T) {
	long := strings.Repeat("x", 62)
	whole := func(n int64) table.Value { return table.Value{Type: table.Integer, Int: n} }
	for name, v := range map[string]struct {
		values, want []table.Value
	}{
		"long texts":                    {[]table.Value{text("a"), text("b"), text(long + "yyy"), text(long + "zzz")}, []table.Value{text("b"), text(long + "yy"), text(long + "zz")}},
		"a letter is not cut":           {[]table.Value{text("a"), text(long + "x姓")}, []table.Value{text(long + "x")}},
		"long texts that begin alike":   {[]table.Value{text(long + "xx1"), text(long + "xx2")}, nil},
		"an empty text":                 {[]table.Value{text(""), text("b")}, []table.Value{text("b")}},
		"the greatest and least number": {[]table.Value{whole(math.MinInt64), whole(7), whole(math.MaxInt64)}, []table.Value{whole(7)}},
	} {
		got := rangeBounds(slices.Clone(v.values), len(v.values))
		if !slices.EqualFunc(got, v.want, func(a, b table.Value) bool { return compareKeyValues(a, b) == 0 }) {
			t.Errorf("%s: %v, want %v", name, got, v.want)
		}
	}
}
