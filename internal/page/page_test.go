package page

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func example() *Page {
	return &Page{
		Title: "Load into <b>t</b>", State: "finished", Tone: Good, Lead: []string{"</script><script>alert(1)</script>"},
		Facts:  []Fact{{"rows/s", "1,000", "of which few"}},
		Charts: []Chart{{Title: "Rows", Every: 1, Series: []Series{{"rows/s", []float64{1, math.NaN(), 3}}}}},
		Heat: &Heat{Title: "Partitions", Unit: "rows/s", Every: 2, Partitions: []string{"", "</script>"},
			Counts: [][]int64{{200, 0}, {1, 100}}},
		Tables: []Table{{Title: "Settings", Columns: []string{"name", "value"}, Numbers: []bool{false, true},
			Rows: [][]string{{"<i>x</i>", "1"}}, Note: "a note"}},
	}
}

func render(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	conformance.Must(t, Write(&b, p))
	return b.String()
}

// drawn returns the data that the page passes to its script.
func drawn(t *testing.T, html string) (d struct {
	Charts []struct{ Series []struct{ Values []*float64 } }
	Heat   *struct {
		Partitions []string
		Each       int
		Most       float64
		Cells      string
	}
}) {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(html)
	conformance.MustTrue(t, m != nil, "the page holds no data")
	conformance.MustEqual(t, json.Unmarshal([]byte(m[1]), &d), nil, "in %s", m[1])
	return d
}

func TestPageIsSelfContained(t *testing.T) {
	html := render(t, example())
	asks := regexp.MustCompile(`(?i)<(link|iframe|img|object)|\s(src|href)=|@import|url\(|fetch\(|XMLHttpRequest`)
	conformance.Equal(t, asks.FindString(html), "", "the page asks for something")
	for _, want := range []string{"default-src 'none'", "prefers-color-scheme: dark", "uPlot", ">1,000<",
		`class="verdict good"`, `<td class="n">1</td>`, "a note"} {
		conformance.Contains(t, html, want, "the page")
	}
}

func TestPageEscapesNamesAndValues(t *testing.T) {
	html := render(t, example())
	conformance.Equal(t, strings.Count(html, "</script>"), 2, "scripts end")
	for _, bad := range []string{"<b>t</b>", "<i>x", "<script>alert"} {
		conformance.Equal(t, strings.Contains(html, bad), false, "the page holds %s as it is", bad)
	}
	conformance.Equal(t, drawn(t, html).Heat.Partitions[1], "</script>", "the partition")
}

func TestMissingNumberIsAGap(t *testing.T) {
	v := drawn(t, render(t, example())).Charts[0].Series[0].Values
	conformance.True(t, len(v) == 3 && v[0] != nil && *v[0] == 1 && v[1] == nil && *v[2] == 3, "values %v", v)
}

func TestHeatMapShowsRates(t *testing.T) {
	h := drawn(t, render(t, example())).Heat
	cells := conformance.Try(base64.StdEncoding.DecodeString(h.Cells)).Must(t)
	// 200 in two seconds is a rate of 100. Of the rates 0.5, 50 and 100, the second highest is the brightest.
	conformance.True(t, h.Most == 50 && string(cells) == string([]byte{255, 0, 2, 255}), "%v, most %v", cells, h.Most)
}

func TestHeatMapRowsCombineManyPartitions(t *testing.T) {
	p := &Page{Heat: &Heat{Every: 1, Partitions: make([]string, 1300), Counts: [][]int64{make([]int64, 1300), {7}}}}
	p.Heat.Counts[0][1299] = 3
	h := drawn(t, render(t, p)).Heat
	cells := conformance.Try(base64.StdEncoding.DecodeString(h.Cells)).Must(t)
	conformance.True(t, h.Each == 3 && len(h.Partitions) == 434 && len(cells) == 868 && cells[433] != 0 && cells[434] != 0,
		"%d lines of %d partitions, %d cells", len(h.Partitions), h.Each, len(cells))
}

func TestEmptyPage(t *testing.T) {
	html := render(t, &Page{Title: "nothing"})
	d := drawn(t, html)
	conformance.True(t, d.Heat == nil && len(d.Charts) == 0 && !strings.Contains(html, `id="heat"`), "drawn: %+v", d)
}
