package page

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"tsimport/advise"
	"tsimport/advise/simulate"
)

func report() *advise.Report {
	heat := simulate.Heat{Partitions: 2, Rows: [][]int32{{100, 0}, {50, 50}}}
	return &advise.Report{
		Files: []string{"<script>alert(1)</script>.csv"}, Rows: 1234567, Partitions: 2, Rate: 2000, Growth: 1,
		Candidates: []*advise.Candidate{
			{Column: `a"><img src=x>`, Verdict: advise.Recommended, Reason: "good", Share: 1, Facts: advise.Facts{Distinct: 9, Top: []advise.Hot{{Value: "</td><b>", Share: .5}}},
				Heat: &advise.HeatPair{Before: heat}},
			{Column: "n", Verdict: advise.NotRecommended, Reason: "grows", Share: .5, Facts: advise.Facts{Distinct: 9}, Fix: &advise.Fix{Name: "hash prefix", Expression: "key=md5(n, 4) + text(n)", Share: 1},
				Heat: &advise.HeatPair{Before: heat, After: &heat}},
			{Column: "price", Verdict: advise.NotRecommended, Reason: "double"},
		},
	}
}

func render(t *testing.T, r *advise.Report) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePageNeedsNothingElse(t *testing.T) {
	html := render(t, report())
	if found := regexp.MustCompile(`(src|href)="[^#"][^"]*"|@import|url\(|https?://`).FindString(html); found != "" {
		t.Errorf("the page asks for %s", found)
	}
	for _, want := range []string{"1,234,567 rows", "prefers-color-scheme: dark", "No key is recommended", "cannot be a key", "hash prefix"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

func TestNamesAndValuesOfTheDataAreTextOnThePage(t *testing.T) {
	html := render(t, report())
	for _, bad := range []string{"<script>alert", "<img", "</td><b>"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %s as it is", bad)
		}
	}
}

func TestTheMapsShowEachPartitionsPartOfTheWrites(t *testing.T) {
	html := render(t, report())
	cells := regexp.MustCompile(`data-cells="([^"]*)"`).FindAllStringSubmatch(html, -1)
	if len(cells) != 3 {
		t.Fatalf("%d maps, want one of the first candidate and two of the second", len(cells))
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+strings.ReplaceAll(cells[0][1], "&#43;", "+")+`"`), &text); err != nil {
		t.Fatal(err)
	}
	got, err := base64.StdEncoding.DecodeString(text)
	// Twice the even part, none, and the even part two times; eight times is 255.
	if want := []byte{63, 0, 31, 31}; err != nil || string(got) != string(want) {
		t.Errorf("cells %v (%v), want %v", got, err, want)
	}
}

func TestSizesAndNumbersAreReadable(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KB", 11 << 30: "11.0 GB", 3 << 50: "3.0 PB"} {
		if got := size(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
