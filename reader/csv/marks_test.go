package csv

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMarkedLinesAreReadAsOthersAre reads random texts, whose lines cross blocks and windows, with and without marks.
func TestMarkedLinesAreReadAsOthersAre(t *testing.T) {
	if !marked {
		t.Skip("this processor marks nothing")
	}
	dialects := []Dialect{
		Default, {Delimiter: "\x00", Quote: '"'}, {Delimiter: "\x81"}, {Delimiter: "|", Quote: '\'', Blank: true}, {Delimiter: ",", Quote: '"', EOL: '\r'},
		{Delimiter: "\t", Escape: '\\', Escapes: EscapesHive, Null: `\N`}, {Delimiter: ",", Quote: '"', RecordEnd: "\n"},
	}
	pieces := []string{"a", "b7", "é", "\x80", "\xff", ",", "|", "\t", "\x00", "\x81", ",,", "\r", "\r\n", "\n", "\n\n", "\r\n\r\n", `"`, `""`, "'", `\`, `\N`, "a word that is longer than others"}
	rnd := rand.New(rand.NewPCG(3, 5))
	all := func(p *Parser, text []byte) string {
		p.Reset(text)
		var out strings.Builder
		for rec, ok := p.Next(); ok; rec, ok = p.Next() {
			fmt.Fprintf(&out, "%+v %v ascii %v:", rec.Span, rec.Bad, rec.ASCII)
			for i := range rec.Fields {
				d := &rec.Fields[i]
				fmt.Fprintf(&out, " %v %v %q", d.Kind, d.Quoted, d.Bytes)
			}
			out.WriteByte('\n')
		}
		return out.String() + fmt.Sprint(p.Records(), p.Lines(), p.pos)
	}
	parsers := map[int][2]*Parser{}
	for i, d := range dialects {
		parsers[i] = [2]*Parser{NewParser(d), NewParser(d)}
		if !parsers[i][0].window.used {
			t.Fatalf("%v is not read by marks", d)
		}
		parsers[i][1].window.used = false
	}
	for n := range 1_000 {
		common, long := rnd.IntN(len(pieces)), rnd.IntN(len(pieces))
		var text []byte
		for range rnd.IntN([]int{8, 40, 150, 600}[n%4]) {
			switch rnd.IntN(12) {
			case 0, 1, 2, 3:
				text = append(text, pieces[rnd.IntN(len(pieces))]...)
			case 4:
				for range rnd.IntN(90) {
					text = append(text, pieces[long]...)
				}
			default:
				text = append(text, pieces[common]...)
			}
		}
		if n%3 == 0 { // an end at the end of a block
			text = append(text, make([]byte, 63-len(text)%64)...)
		}
		pair := parsers[n%len(dialects)]
		for k := range pair {
			pair[k].MaxFields = []int{0, 5}[n/7%2]
		}
		if got, want := all(pair[0], text), all(pair[1], text); got != want {
			t.Fatalf("%v, %q:\n%s\nwant\n%s", dialects[n%len(dialects)], text, got, want)
		}
	}
}
