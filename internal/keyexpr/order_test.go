package keyexpr

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/table"
)

// evalTwo evaluates two rows by one evaluator each, so that both values stay.
func evalTwo(p *Program, a, b []table.Value) (x, y table.Value, ok bool) {
	x, why := p.NewEvaluator().Eval(a)
	if why != nil {
		return x, y, false
	}
	y, why = p.NewEvaluator().Eval(b)
	return x, y, why == nil
}

// compareKeys is how the service sorts two values of a key column.
func compareKeys(x, y table.Value) int {
	return bytes.Compare(table.AppendKey(nil, x), table.AppendKey(nil, y))
}

func TestPadAndDescKeepTheOrderOfEveryNumberTheyTake(t *testing.T) {
	anyInt := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1000, 1000))
	for source, up := range map[string]int{`pad(CardID, 19)`: 1, `pad(CardID, 3)`: 1, `pad(CardID, 19, signed)`: 1, `pad(CardID, 2, signed)`: 1,
		`desc(CardID)`: -1, `desc(CardID, "text")`: -1, `desc(desc(CardID), "text")`: 1, `pad(CardID - 5, 4)`: 1, `pad(5 - CardID, 4)`: -1,
		`int(pad(CardID, 7))`: 1} {
		p := compile(t, source)
		want := Ascending
		if up < 0 {
			want = Descending
		}
		if s, ok := single(p.root.order); !ok || s.Order != want || s.Column != "CardID" {
			t.Errorf("%s: said to be %+v", source, p.root.order)
		}
		rapid.Check(t, func(t *rapid.T) {
			a, b := anyInt.Draw(t, "a"), anyInt.Draw(t, "b")
			x, y, ok := evalTwo(p, row(map[string]table.Value{"CardID": num(a)}), row(map[string]table.Value{"CardID": num(b)}))
			if ok && compareKeys(x, y) != up*cmp.Compare(a, b) {
				t.Fatalf("%s: %d gives %s, %d gives %s", source, a, appendText(nil, x), b, appendText(nil, y))
			}
		})
	}
}

func TestPadOfDigitsKeepsTheirOrderAsNumbers(t *testing.T) {
	p := compile(t, `pad(Name, 8)`)
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9]{1,9}`)
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		x, y, ok := evalTwo(p, row(map[string]table.Value{"Name": str(a)}), row(map[string]table.Value{"Name": str(b)}))
		if ok != (len(a) <= 8 && len(b) <= 8) {
			t.Fatalf("%q and %q: accepted %v", a, b, ok)
		}
		trim := func(s string) []byte { return bytes.TrimLeft([]byte(s), "0") }
		want := cmp.Or(cmp.Compare(len(trim(a)), len(trim(b))), bytes.Compare(trim(a), trim(b)))
		if ok && compareKeys(x, y) != want {
			t.Fatalf("%q gives %q, %q gives %q", a, x.Bytes, b, y.Bytes)
		}
	})
}

func TestSpliceKeepsTheOrderOfEveryPairOfTextsThatItTakes(t *testing.T) {
	for source, separator := range map[string]rune{`splice(",", SellerID, Name)`: ',', `splice("中", SellerID, Name)`: '中'} {
		p := compile(t, source)
		text := rapid.StringOf(rapid.RuneFrom([]rune{separator, separator - 1, separator + 1, separator + 2, 'a', 'é', '国', '\U0001f600'}))
		rapid.Check(t, func(t *rapid.T) {
			a, b, c, d := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c"), text.Draw(t, "d")
			x, y, ok := evalTwo(p, row(map[string]table.Value{"SellerID": str(a), "Name": str(b)}), row(map[string]table.Value{"SellerID": str(c), "Name": str(d)}))
			takes := a != "" && c != ""
			for _, r := range a + b + c + d {
				takes = takes && r > separator
			}
			if ok != takes {
				t.Fatalf("%q %q %q %q: accepted %v", a, b, c, d, ok)
			}
			want := cmp.Or(cmp.Compare(a, c), cmp.Compare(b, d))
			if ok && compareKeys(x, y) != want {
				t.Fatalf("%q, %q gives %q; %q, %q gives %q", a, b, x.Bytes, c, d, y.Bytes)
			}
		})
	}
}

func TestOrderIsNotPromisedWhereItIsNotKept(t *testing.T) {
	for _, source := range []string{`md5(CardID, 4)`, `text(CardID)`, `reverse(Name)`, `lower(Name)`, `upper(Name)`, `bucket(CardID, 9)`, `salt(9)`,
		`substr(Name, 2)`, `substr(CardID, 1, 2)`, `month(CardID, "s")`, `Name + SellerID`, `CardID * 2`, `CardID + OrderNumber`,
		`format_time(CardID, "2006-1-2", "s")`, `format_time(CardID, "02-01-2006", "s")`, `format_time(CardID, "2006-01-02 15", "s", "America/New_York")`,
		`int(pad(CardID, 2, signed))`, `int(splice(",", pad(CardID, 2, signed)))`, `int(substr(Name, 1, 2))`, `pad(substr(Name, 1, 2), 4)`,
		`int(format_time(CardID, "-2006", "s"))`, `format_time(CardID, "%Y01%d", "s")`, `format_time(CardID, "v2-%Y", "s")`, `trim(Name)`, `CardID ?? 1`, `Paid ? Name : SellerID`, `CardID - CardID % OrderNumber`} {
		if s, ok := single(compile(t, source).root.order); ok {
			t.Errorf("%s: said to be %+v", source, s)
		}
	}
}

// TestTextsOfFixedWidthKeepTheOrderOfWhatFollows also has orders that are coarse. That such promises hold is tested for every expression.
func TestTextsOfFixedWidthKeepTheOrderOfWhatFollows(t *testing.T) {
	for source, want := range map[string][]Order{
		`format_time(CardID, "2006-01-02 15", "s")`:                  {CoarseAscending},
		`format_time(CardID, "200601", "s", "Asia/Kolkata")`:         {CoarseAscending},
		`year(CardID, "ms")`:                                         {CoarseAscending},
		`CardID - CardID % 3600`:                                     {CoarseAscending},
		`substr(pad(CardID, 12), 1, 5)`:                              {CoarseAscending},
		`md5(CardID,4) + Name`:                                       {NoOrder, Ascending},
		`pad(CardID,9) + pad(OrderNumber,9) + Name`:                  {Ascending, Ascending, Ascending},
		`splice(",", bucket(CardID, 16), desc(CardID,"text"), Name)`: {NoOrder, Descending, Ascending},
		`splice(",", SellerID, CardID)`:                              {Ascending, NoOrder},
		`pad(CardID,6)+":"+Name+":"+text(OrderNumber)`:               {Ascending, Constant, NoOrder},
		`pad(CardID,6)+(":"+Name)`:                                   {Ascending, Constant, Ascending},
		`splice(",", SellerID, Name) + pad(CardID,3)`:                {Ascending, NoOrder},
		`splice(",", pad(CardID,2) + Name, SellerID)`:                {Ascending, Ascending, Ascending},
		`"u" + Name`: {Constant, Ascending},
		`splice("-", pad(CardID, 3), salt(10)) + Name`:  {Ascending, NoOrder, Ascending},
		`format_time(CardID, "2006010215", "s") + Name`: {CoarseAscending, Ascending},
	} {
		order := compile(t, source).root.order
		for i := range want {
			if len(order) != len(want) || order[i].Order != want[i] || order[i].Order == CoarseAscending && order[i].Column != "CardID" {
				t.Errorf("%s: %+v, want %v", source, order, want)
				break
			}
		}
	}
}

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
