package filter

import (
	"fmt"
	"strings"
	"testing"

	"tsimport/engine/wire"
)

func BenchmarkMatch(b *testing.B) {
	var flat []any
	for i := range 10 {
		flat = append(flat, fmt.Sprintf("column%d", i), fmt.Sprintf("a value of some length, n=%d", i))
	}
	row := cells(flat...)
	leaf1 := leaf{op: greaterEqual, column: "column7", value: "a value", filterIfMissing: true, latest: true}
	regex := leaf1
	regex.value, regex.rule = 7, transfer(`n=(\d+)$`, wire.Integer)
	var many [][]byte
	for i := range 31 {
		many = append(many, leaf{op: equal, column: fmt.Sprintf("column%d", i%10), value: i, latest: true}.bytes())
	}
	for name, bytes := range map[string][]byte{"comparison": leaf1.bytes(), "expression": regex.bytes(), "31 comparisons": composite(combineOr, many...)} {
		b.Run(name, func(b *testing.B) {
			f := decode(b, bytes)
			b.ReportAllocs()
			for b.Loop() {
				f.Match(nil, row)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/row")
		})
	}
}

// BenchmarkLargestExpression is about the worst a filter can ask for: every instruction alive at every byte of the
// largest value.
func BenchmarkLargestExpression(b *testing.B) {
	f := decode(b, leaf{op: exists, column: "c", value: 0, rule: transfer("(?:a?){511}b", wire.String)}.bytes())
	row := cells("c", strings.Repeat("a", wire.MaxValueBytes))
	for b.Loop() {
		f.Match(nil, row)
	}
}
