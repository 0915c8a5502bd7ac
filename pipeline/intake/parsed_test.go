package intake

import (
	"slices"
	"testing"
)

func TestTruncateDropsWhatFollows(t *testing.T) {
	text, want := mixed("a.csv", 40)
	r := ask(file(t, "a.csv", text))
	r.Read.SplitBytes = 1 << 20
	for n := range 42 {
		var got []place
		records := 0
		must(t, runs(t, flow(t, r, "k0003", "k0020"), func(p *Parsed) {
			p.Truncate(n)
			got, records = append(got, places(p)...), records+p.Records
		}))
		if left := want[:min(n, 40)]; records != len(left) || !slices.Equal(got, left) {
			t.Errorf("truncated to %d: %d records, %v", n, records, got)
		}
	}
}
