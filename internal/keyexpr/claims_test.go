package keyexpr

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/table"
)

// expression draws an expression over CardID, Name and SellerID, of a text or of a number.
func expression(t *rapid.T, number bool, depth int) string {
	sub := func(number bool) string { return expression(t, number, depth-1) }
	digits := func() int { return rapid.IntRange(1, 6).Draw(t, "digits") }
	pick := func(choices ...func() string) string { return rapid.SampledFrom(choices).Draw(t, "form")() }
	leaf := func(text string) func() string { return func() string { return text } }
	if depth == 0 {
		if number {
			return pick(leaf("CardID"), leaf("CardID"), leaf("3600"), leaf("-7"))
		}
		return pick(leaf("Name"), leaf("SellerID"), leaf(`"x"`), leaf(`"10"`))
	}
	if number {
		return pick(
			func() string { return "int(" + sub(rapid.Bool().Draw(t, "number")) + ")" },
			func() string { return "desc(" + sub(true) + ")" },
			func() string { return fmt.Sprintf("(%s + %d)", sub(true), digits()) },
			func() string { return fmt.Sprintf("(%d - %s)", digits(), sub(true)) },
			func() string { return fmt.Sprintf("(%s * %d)", sub(true), digits()) },
			func() string { return fmt.Sprintf("-%s", sub(true)) },
			func() string { x := sub(true); return fmt.Sprintf("(%s - %s %% %d)", x, x, digits()) },
			func() string { return fmt.Sprintf("(%s %% %d)", sub(true), digits()) },
			func() string { return fmt.Sprintf("year(%s, \"s\")", sub(true)) },
			leaf("CardID"))
	}
	return pick(
		func() string { return fmt.Sprintf("pad(%s, %d)", sub(rapid.Bool().Draw(t, "number")), digits()) },
		func() string { return fmt.Sprintf("pad(%s, %d, signed)", sub(true), digits()) },
		func() string { return "desc(" + sub(true) + `, "text")` },
		func() string { return "text(" + sub(rapid.Bool().Draw(t, "number")) + ")" },
		func() string {
			return fmt.Sprintf("substr(%s, %d, %d)", sub(false), rapid.IntRange(1, 2).Draw(t, "from"), digits())
		},
		func() string {
			return fmt.Sprintf("splice(\",\", %s, %s)", sub(false), sub(rapid.Bool().Draw(t, "number")))
		},
		func() string { return fmt.Sprintf("splice(\"é\", %s)", sub(false)) },
		func() string { return "(" + sub(false) + " + " + sub(false) + ")" },
		func() string { return fmt.Sprintf("bucket(%s, %d)", sub(rapid.Bool().Draw(t, "number")), digits()) },
		func() string { return fmt.Sprintf("md5(%s, %d)", sub(false), digits()) },
		func() string { return "reverse(" + sub(false) + ")" },
		func() string { return "lower(" + sub(false) + ")" },
		func() string { return "format_time(" + sub(true) + `, "2006-01-02 15", "s")` },
		func() string { return "format_time(" + sub(true) + `, "-2006", "s")` },
		func() string { return "format_time(" + sub(true) + `, "200601", "s", "Asia/Kolkata")` },
		func() string { return "(" + sub(false) + ` ?? "n")` },
		leaf("Name"))
}

// compareColumns compares what two rows have in a column, a text also as the number that it may be.
func compareColumns(column string, a, b []table.Value) (asText, asNumber int) {
	for i, in := range inputs {
		if in.Name == column {
			asText = compareKeys(a[i], b[i])
			x, err1 := strconv.Atoi(string(a[i].Bytes))
			y, err2 := strconv.Atoi(string(b[i].Bytes))
			if asNumber = asText; err1 == nil && err2 == nil {
				asNumber = cmp.Compare(x, y)
			}
		}
	}
	return asText, asNumber
}

// TestThePromisedOrderHoldsForEveryExpression draws expressions, and rows for each: the keys of every two rows stand as the
// segments say, and a segment stands to its column as it says.
func TestThePromisedOrderHoldsForEveryExpression(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`-?[0-9]{1,4}`), rapid.StringOf(rapid.SampledFrom([]rune("ab-/09é,国"))))
	ints := rapid.OneOf(rapid.Int64Range(-30, 30), rapid.Int64Range(0, 200000), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		source := expression(t, rapid.Bool().Draw(t, "number"), rapid.IntRange(1, 4).Draw(t, "depth"))
		p, err := Compile(source, Env{Name: "k", Columns: inputs})
		if err != nil {
			return
		}
		var rows [][]table.Value
		var keys [][]byte
		for range 12 {
			r := row(map[string]table.Value{"CardID": num(ints.Draw(t, "CardID")), "Name": str(text.Draw(t, "Name")), "SellerID": str(text.Draw(t, "SellerID"))})
			if v, why := p.NewEvaluator().Eval(r); why == nil && v.Type != table.Null {
				rows, keys = append(rows, r), append(keys, table.AppendKey(nil, v))
			}
		}
		down := map[bool]int{true: -1, false: 1}
		for _, s := range p.root.order {
			if s.Column == "" || s.Order == NoOrder || s.Order == Constant {
				continue
			}
			part := p
			if len(p.root.order) > 1 {
				if part, err = Compile(s.Text, Env{Columns: inputs}); err != nil {
					t.Fatalf("%s: segment %s: %v", source, s.Text, err)
				}
			}
			exact := s.Order == Ascending || s.Order == Descending
			sign := down[s.Order == Descending || s.Order == CoarseDescending]
			textOK, numberOK := true, true
			for i, a := range rows {
				for _, b := range rows[:i] {
					x, y, ok := evalTwo(part, a, b)
					if !ok {
						continue
					}
					got := sign * compareKeys(x, y)
					asText, asNumber := compareColumns(s.Column, a, b)
					textOK = textOK && (got == asText || !exact && got == 0)
					numberOK = numberOK && (got == asNumber || !exact && got == 0 || got == 0 && part.root.src != s.Column)
				}
			}
			if !textOK && !numberOK {
				t.Fatalf("%s: %s is said to be %s in %s", source, s.Text, s.Order, s.Column)
			}
		}
		for i, a := range rows {
			for j, b := range rows[:i] {
				want := 0
				for _, s := range p.root.order {
					part, err := Compile(s.Text, Env{Columns: inputs})
					if err != nil || want != 0 {
						break
					}
					x, y, ok := evalTwo(part, a, b)
					if !ok {
						return
					}
					want = compareKeys(x, y)
				}
				if got := bytes.Compare(keys[i], keys[j]); len(p.root.order) > 1 && got != want {
					t.Fatalf("%s: %q and %q stand otherwise than %+v", source, keys[i], keys[j], p.root.order)
				}
			}
		}
	})
}

// FuzzCompile feeds any text to Compile, and a row to what compiles: nothing may panic, errors are one line, and a value
// is of the type that was promised.
func FuzzCompile(f *testing.F) {
	for _, source := range []string{`splice(",", pad(DeviceID,6), SellerID, CardID)`, `md5(text(OrderNumber)+"\n", 4) + text(OrderNumber)`,
		`let x = CardID; pad(x, 5)`, `map([1,2], # + CardID)[0]`, `col("unit price") ?? 1`, `splice(auto, Name, SellerID)`, `salt(5)`,
		`Paid ? Name : nil`, `CardID | pad(9) | upper()`, `format_time(Name, "%Y", "Asia/Shanghai")`, `"\xff" + Name`, `-9223372036854775808 + CardID`,
		`trim(Name)[:2] matches "a"`, `{"a": CardID}.a`, `Name.x`, `pad(pad, 2)`, `1..CardID`, `a?.b`, `Mixed in [1]`, `if Paid { 1 } else { 2 }`} {
		f.Add(source, "a,b", int64(7))
	}
	f.Fuzz(func(t *testing.T, source, text string, n int64) {
		env := Env{Columns: inputs, SaltColumns: []string{"CardID"}, Separator: ',',
			ReadFile: func(string) ([]byte, error) { return nil, errors.New("no files here") }}
		p, err := Compile(source, env)
		if err != nil {
			if utf8.ValidString(source) && strings.Contains(err.Error(), "\n") {
				t.Fatalf("more than a line: %q", err)
			}
			return
		}
		if strings.Contains(source, "..") || strings.Contains(source, "repeat") {
			return // long lists are bounded by the language's own budget, which takes its time to reach
		}
		values := row(map[string]table.Value{"Name": str(strings.ToValidUTF8(text, "")), "Mixed": {}, "CardID": num(n)})
		v, why := p.NewEvaluator().Eval(values)
		if why == nil && v.Type != table.Null && p.Type != table.Any && v.Type != p.Type {
			t.Fatalf("%s: %v, promised %v", source, v.Type, p.Type)
		}
		if again, whyAgain := p.NewEvaluator().Eval(values); (why == nil) != (whyAgain == nil) || string(appendText(nil, v)) != string(appendText(nil, again)) {
			t.Fatalf("%s: %v %v, then %v %v", source, v, why, again, whyAgain)
		}
		Explain(Design{Columns: []Column{{Name: "k", Expr: source}}, Programs: []*Program{p}, Inputs: inputs}, [][]table.Value{values}, nil).Text()
	})
}
