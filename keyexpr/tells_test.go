package keyexpr

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tsimport/internal/table"
)

// drawText draws an expression that gives a text of the columns a and b, texts, n, an integer, and x, whose type is known for each row only.
func drawText(rnd *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "text(n)", "text(x)", `"/"`, `"1"`, `"-"`, "pad(n,2,signed)", "desc(n,\"text\")", "pad(a,3)", "pad(x,3)", "x", `a + "/" + b`, `a + "1" + text(n)`}[rnd.IntN(14)]
	}
	l, r := drawText(rnd, depth-1), drawText(rnd, rnd.IntN(depth))
	return fmt.Sprintf([]string{"(%s + %s)", `splice("-",%s,%s)`, `splice(",",%s,%s)`, "(sha256(%s,32) + %s)", "(md5(%s,2) + %s)", "(reverse(%s) + %s)",
		"(lower(%s) + %s)", "(pad(int(%s),2) + %s)", "(text(int(%s)+1) + %s)", "(text(n/2) + %s + %s)", "(substr(%s,1,1) + %s)"}[rnd.IntN(11)], l, r)
}

var programs = flag.Int("programs", 250, "random expressions that say which columns they tell")

// TestAProgramKeepsDifferentValuesApart: of all rows of few values, those with equal results must have equal values in the columns that the program
// is said to tell. What it is said not to tell may be told all the same.
func TestAProgramKeepsDifferentValuesApart(t *testing.T) {
	texts := []string{"", "1", "01", "-", "-1", "/", "1/", "A", "a", "a-1", "11", "1-1"}
	text := func(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }
	number := func(n int64) table.Value { return table.Value{Type: table.Integer, Int: n} }
	var rows [][]table.Value
	for _, a := range texts {
		for _, b := range texts {
			for _, n := range []int64{-1, 0, 1, 10, 11} {
				for _, x := range []table.Value{number(1), text("1"), text("a")} {
					rows = append(rows, []table.Value{text(a), text(b), number(n), x})
				}
			}
		}
	}
	env := Env{Columns: []Input{{"a", table.String}, {"b", table.String}, {"n", table.Integer}, {"x", table.Any}}}
	rnd := rand.New(rand.NewPCG(1, 2))
	told := map[int]int{}
	for range *programs {
		expr := drawText(rnd, 1+rnd.IntN(3))
		p, err := Compile(expr, env)
		if err != nil {
			continue
		}
		e, first := p.NewEvaluator(), map[string][]table.Value{}
		told[len(p.Tells())]++
		for _, row := range rows {
			v, why := e.Eval(row)
			if why != nil || v.Type == table.Null {
				continue
			}
			same, ok := first[string(v.Bytes)]
			if !ok {
				first[strings.Clone(string(v.Bytes))] = row
				continue
			}
			for i, in := range env.Columns {
				if slices.Contains(p.Tells(), in.Name) && (same[i].Type != row[i].Type || same[i].Int != row[i].Int || string(same[i].Bytes) != string(row[i].Bytes)) {
					t.Fatalf("%s is said to tell %v, and rows %v and %v give %q", expr, p.Tells(), same, row, v.Bytes)
				}
			}
		}
	}
	if told[0] < 8 || told[1] < 8 || told[2]+told[3] < 8 {
		t.Errorf("expressions that tell so many columns: %v", told)
	}
}
