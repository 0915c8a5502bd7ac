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

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// boundKey returns a bound as an ordering key. A limit sorts before or after all values of its column.
func boundKey(b *Bounds, bound []BoundValue, n int) (key []byte) {
	for _, v := range bound {
		switch v.Limit {
		case limitMin:
			return key
		case limitMax:
			return append(key, bytes.Repeat([]byte{0xff}, 64)...)
		}
		value := v.value
		if v.many {
			value.Bytes = append([]byte(fmt.Sprintf(b.Prefix, n)), value.Bytes...)
		}
		key = table.AppendKey(key, value)
	}
	return key
}

// drawRow draws a row in which few different values occur.
func drawRow(rt *rapid.T) []table.Value {
	few := func(most int64, name string) table.Value { return num(rapid.Int64Range(0, most).Draw(rt, name)) }
	text := func(name string, of ...string) table.Value { return str(rapid.SampledFrom(of).Draw(rt, name)) }
	return row(with{"CardID": few(25, "card"), "DeviceID": few(4, "device"), "OrderNumber": few(4, "order"),
		"SellerID": text("seller", "a", "ab", "abc", "a:", "ax", "b", "国"), "Name": text("name", "", "a", "x", "xx")})
}

func TestBoundsContainExactlyMatchingRows(t *testing.T) {
	env := Env{Columns: inputs, SaltColumns: []string{"CardID", "SellerID"}}
	for _, tt := range []struct {
		key     []string
		column  string
		with    []string // columns whose value must also be the same
		ranges  int
		filters bool
	}{
		{[]string{"CardID", "OrderNumber"}, "CardID", nil, 1, false},
		{[]string{"CardID", "OrderNumber"}, "OrderNumber", []string{"CardID"}, 1, false},
		{[]string{"SellerID", "OrderNumber"}, "SellerID", nil, 1, false},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "DeviceID", nil, 1, false},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "SellerID",
			[]string{"DeviceID"}, 1, true},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "CardID",
			[]string{"DeviceID", "SellerID"}, 1, true},
		{[]string{`k=splice(",", pad(DeviceID,6), SellerID, CardID)`, "OrderNumber"}, "SellerID",
			[]string{"DeviceID"}, 1, false},
		{[]string{`k=splice(",", SellerID, pad(DeviceID,6)+Name)`}, "DeviceID", []string{"SellerID"}, 1, false},
		{[]string{`k=SellerID+"x"+Name`, "CardID"}, "SellerID", nil, 1, true},
		{[]string{`k=md5(OrderNumber,1)+pad(OrderNumber,3)`, "CardID"}, "OrderNumber", nil, 1, false},
		{[]string{`k=md5(OrderNumber,1)+pad(CardID,3)`, "OrderNumber"}, "CardID", nil, 16, false},
		{[]string{`k=bucket(CardID,3)`, "CardID", "OrderNumber"}, "CardID", nil, 1, false},
		{[]string{`k=bucket(OrderNumber,3)`, "CardID"}, "CardID", nil, 3, false},
		{[]string{`s=salt(12)`, "CardID", "SellerID"}, "CardID", nil, 12, false},
		{[]string{`k=md5(SellerID,2)+SellerID`, "OrderNumber"}, "SellerID", nil, 1, false},
		{[]string{"at=CardID - CardID % 10", "CardID"}, "CardID", nil, 1, false},
		{[]string{"at=desc(CardID)", "OrderNumber"}, "CardID", nil, 1, false},
	} {
		d := design(t, env, tt.key...)
		rapid.Check(t, func(rt *rapid.T) {
			var rows [][]table.Value
			for range rapid.IntRange(1, 30).Draw(rt, "rows") {
				rows = append(rows, drawRow(rt))
			}
			given := Given{}
			for i, in := range inputs {
				given[in.Name] = rows[0][i]
			}
			b := d.Bounds(tt.column, given)
			conformance.MustTrue(rt, b != nil && b.Ranges == tt.ranges && b.Filters == tt.filters, "%q: %+v", tt.key, b)
			for _, r := range rows {
				inside, rejected := within(d, b, r)
				if rejected {
					return
				}
				want := true
				for i, in := range inputs {
					if in.Name == tt.column || slices.Contains(tt.with, in.Name) {
						want = want && shownValue(r[i]) == shownValue(given[in.Name])
					}
				}
				conformance.MustTrue(rt, inside == want || inside && tt.filters,
					"%q: %s given %v: a row with %v is inside: %v\n%s", tt.key, tt.column, b.Given, r, inside, b.Python)
			}
		})
	}
}

// within reports whether the key of a row is within the bounds, and whether the row is rejected.
func within(d Design, b *Bounds, r []table.Value) (inside, rejected bool) {
	var key []byte
	for _, p := range d.Programs {
		v, why := p.NewEvaluator().Eval(r)
		if why != nil {
			return false, true
		}
		key = table.AppendKey(key, v)
	}
	for i := range b.Ranges {
		start := boundKey(b, b.Start, i)
		if b.Row {
			inside = inside || bytes.Equal(key, start)
			continue
		}
		inside = inside || bytes.Compare(key, start) >= 0 && bytes.Compare(key, boundKey(b, b.End, i)) < 0
	}
	return inside, false
}

func TestRangeBoundsContainExactlyMatchingRows(t *testing.T) {
	env := Env{Columns: inputs, SaltColumns: []string{"CardID", "SellerID"}}
	for _, tt := range []struct {
		key     []string
		column  string
		with    []string // columns whose value must be the same
		ranges  int      // 0 if the key has no bounds
		filters bool
	}{
		{[]string{"CardID"}, "CardID", nil, 1, false},
		{[]string{"CardID", "OrderNumber"}, "CardID", nil, 1, false},
		{[]string{"CardID", "OrderNumber"}, "OrderNumber", []string{"CardID"}, 1, false},
		{[]string{"SellerID", "OrderNumber"}, "SellerID", nil, 1, false},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "DeviceID", nil, 1, false},
		{[]string{`k=splice(",", pad(DeviceID,6), SellerID, CardID)`}, "DeviceID", nil, 1, false},
		{[]string{`k=splice(",", pad(DeviceID,6), SellerID, pad(CardID,4))`}, "CardID", []string{"DeviceID", "SellerID"}, 1,
			false},
		{[]string{`k=SellerID+"x"+Name`, "CardID"}, "SellerID", nil, 0, false},
		{[]string{`k=md5(CardID,1)+pad(CardID,3)`, "OrderNumber"}, "CardID", nil, 16, false},
		{[]string{`k=bucket(CardID,3)`, "CardID", "OrderNumber"}, "CardID", nil, 3, false},
		{[]string{`s=salt(12)`, "CardID", "SellerID"}, "CardID", nil, 12, false},
		{[]string{`k=md5(SellerID,2)`, "OrderNumber"}, "SellerID", nil, 0, false},
		{[]string{"at=CardID - CardID % 10", "CardID"}, "CardID", nil, 1, true},
		{[]string{"at=desc(CardID)", "OrderNumber"}, "CardID", nil, 1, false},
		{[]string{"at=desc(CardID)"}, "CardID", nil, 0, false},
	} {
		d := design(t, env, tt.key...)
		at := slices.IndexFunc(inputs, func(in Input) bool { return in.Name == tt.column })
		rapid.Check(t, func(rt *rapid.T) {
			low, high, given := drawRow(rt), drawRow(rt), Given{}
			compare := func(a, b table.Value) int { return bytes.Compare(table.AppendKey(nil, a), table.AppendKey(nil, b)) }
			if compare(low[at], high[at]) >= 0 {
				return
			}
			for i, in := range inputs {
				given[in.Name] = low[i]
			}
			b := d.RangeBounds(tt.column, given, high[at])
			if tt.ranges == 0 && b == nil {
				return
			}
			conformance.MustTrue(rt, b != nil && b.Ranges == tt.ranges && b.Filters == tt.filters, "%q: %+v", tt.key, b)
			for range 20 {
				r := drawRow(rt)
				want := compare(r[at], low[at]) >= 0 && compare(r[at], high[at]) < 0
				for i, in := range inputs {
					want = want && (!slices.Contains(tt.with, in.Name) || shownValue(r[i]) == shownValue(low[i]))
				}
				inside, rejected := within(d, b, r)
				conformance.MustTrue(rt, rejected || inside == want || inside && tt.filters, "%v: %v: %v", b, r, inside)
			}
		})
	}
}

func TestBoundsAreWrittenInGoAndPython(t *testing.T) {
	env := Env{Columns: inputs}
	given := Given{"DeviceID": num(200004), "CardID": num(7), "OrderNumber": num(12), "SellerID": str("中\"")}
	for _, tt := range []struct {
		key                    []string
		column, golang, python string
	}{
		{[]string{`key=pad(DeviceID,6)+":"+SellerID`, "OrderNumber"}, "DeviceID", `start := new(tablestore.PrimaryKey)
start.AddPrimaryKeyColumn("key", "200004:")
start.AddPrimaryKeyColumnWithMinValue("OrderNumber")
end := new(tablestore.PrimaryKey)
end.AddPrimaryKeyColumn("key", "200004;")
end.AddPrimaryKeyColumnWithMinValue("OrderNumber")`, `inclusive_start = [("key", "200004:"), ("OrderNumber", INF_MIN)]
exclusive_end = [("key", "200004;"), ("OrderNumber", INF_MIN)]`},
		{[]string{"CardID", "seq:auto"}, "CardID", `start := new(tablestore.PrimaryKey)
start.AddPrimaryKeyColumn("CardID", int64(7))
start.AddPrimaryKeyColumnWithMinValue("seq")
end := new(tablestore.PrimaryKey)
end.AddPrimaryKeyColumn("CardID", int64(7))
end.AddPrimaryKeyColumnWithMaxValue("seq")`, `inclusive_start = [("CardID", 7), ("seq", INF_MIN)]
exclusive_end = [("CardID", 7), ("seq", INF_MAX)]`},
		{[]string{"k=md5(CardID,2)+pad(OrderNumber,6)", "CardID"}, "OrderNumber", `for i := range 256 {
	start := new(tablestore.PrimaryKey)
	start.AddPrimaryKeyColumn("k", fmt.Sprintf("%02x", i) + "000012")
	start.AddPrimaryKeyColumnWithMinValue("CardID")
	end := new(tablestore.PrimaryKey)
	end.AddPrimaryKeyColumn("k", fmt.Sprintf("%02x", i) + "000012")
	end.AddPrimaryKeyColumnWithMaxValue("CardID")
	// GetRange from start to end
}`, `for i in range(256):
    inclusive_start = [("k", "%02x" % i + "000012"), ("CardID", INF_MIN)]
    exclusive_end = [("k", "%02x" % i + "000012"), ("CardID", INF_MAX)]`},
		{[]string{"SellerID"}, "SellerID", `key := new(tablestore.PrimaryKey)
key.AddPrimaryKeyColumn("SellerID", "\u4e2d\"")`, `primary_key = [("SellerID", "\u4e2d\"")]`},
	} {
		d := Design{Inputs: inputs}
		for _, text := range tt.key {
			if name, auto := strings.CutSuffix(text, ":auto"); auto {
				d.Columns, d.Programs = append(d.Columns, Column{Name: name, Auto: true}), append(d.Programs, nil)
				continue
			}
			one := design(t, env, text)
			d.Columns, d.Programs = append(d.Columns, one.Columns...), append(d.Programs, one.Programs...)
		}
		b := d.Bounds(tt.column, given)
		if b == nil || b.Go != tt.golang || b.Python != tt.python {
			t.Errorf("%q: %+v", tt.key, b)
			continue
		}
		x := Explain(d, [][]table.Value{row(nil)}, given, nil)
		text := x.Text()
		conformance.True(t, strings.Contains(text, strings.Split(tt.python, "\n")[0]) && len(x.Key) == len(tt.key) &&
			len(x.Examples[0].Key) == len(tt.key), "%q:\n%s", tt.key, text)
	}
	b := design(t, env, "CardID", "OrderNumber").Bounds("OrderNumber", Given{"OrderNumber": num(1)})
	conformance.True(t, b == nil, "without the card: %+v", b)
	d := design(t, env, "CardID", "OrderNumber")
	d.Columns, d.Programs = slices.Insert(d.Columns, 1, Column{Name: "seq", Auto: true}), slices.Insert(d.Programs, 1, nil)
	conformance.Equal(t, d.Bounds("OrderNumber", given), nil, "after an auto-increment column")
}

func TestFollowingReturnsNextString(t *testing.T) {
	for text, want := range map[string]string{"a": "b", "a,": "a-", "\x7f": "\u0080", "国": "图", "\uD7FF": "\uE000",
		"a\U0010FFFF": "b", "\U0010FFFF": ""} {
		got, ok := following([]byte(text))
		conformance.True(t, (string(got) == want || text == "国") && ok == (want != "") &&
			(bytes.Compare(got, []byte(text)) > 0 || !ok), "after %q comes %q, want %q", text, got, want)
	}
}

func TestExplanationWarnings(t *testing.T) {
	env := Env{Columns: inputs}
	for _, tt := range []struct {
		key  []string
		warn string
	}{
		{[]string{"k=bucket(CardID, 16)", "CardID"}, "k, the partition key, can have 16 values at most"},
		{[]string{"k=month(CardID, \"s\")", "CardID"}, "k, the partition key, can have 12 values at most"},
		{[]string{"CardID", "OrderNumber", "DeviceID", "SellerID"}, "a table has at most four primary-key columns"},
		{[]string{"k=md5(CardID,4)+text(CardID)", "OrderNumber"}, ""},
		{[]string{"CardID", "k=bucket(CardID, 16)"}, ""},
	} {
		notes := strings.Join(Explain(design(t, env, tt.key...), nil, nil, nil).Notes, "\n")
		if tt.warn == "" && (strings.Contains(notes, "at most") || strings.Contains(notes, "are the most")) ||
			!strings.Contains(notes, tt.warn) {
			t.Errorf("%q: %s", tt.key, notes)
		}
	}
	x := Explain(design(t, env, "SellerID"), nil, nil, nil)
	x.NoteSample(1000, 3)
	conformance.True(t, len(x.Notes) == 1 && strings.Contains(x.Notes[0], "has 3 values in the first 1000"), "%q", x.Notes)
	x.Notes = nil
	x.NoteSample(1000, 90)
	x.NoteSample(100, 1)
	conformance.Equal(t, len(x.Notes), 0, "%q", x.Notes)
}

// evalTwo evaluates two rows with separate evaluators, so that both values remain valid.
func evalTwo(p *Program, a, b []table.Value) (x, y table.Value, ok bool) {
	x, why := p.NewEvaluator().Eval(a)
	if why != nil {
		return x, y, false
	}
	y, why = p.NewEvaluator().Eval(b)
	return x, y, why == nil
}

// compareKeys orders two values of a key column as the service does.
func compareKeys(x, y table.Value) int {
	return bytes.Compare(table.AppendKey(nil, x), table.AppendKey(nil, y))
}

func TestPadAndDescKeepOrder(t *testing.T) {
	anyInt := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1000, 1000))
	for source, up := range map[string]int{`pad(CardID, 19)`: 1, `pad(CardID, 3)`: 1, `pad(CardID, 19, signed)`: 1,
		`pad(CardID, 2, signed)`: 1, `desc(CardID)`: -1, `desc(CardID, "text")`: -1, `desc(desc(CardID), "text")`: 1,
		`pad(CardID - 5, 4)`: 1, `pad(5 - CardID, 4)`: -1, `int(pad(CardID, 7))`: 1} {
		p := compile(t, source)
		want := Ascending
		if up < 0 {
			want = Descending
		}
		s, ok := single(p.root.order)
		conformance.True(t, ok && s.Order == want && s.Column == "CardID", "%s: said to be %+v", source, p.root.order)
		rapid.Check(t, func(t *rapid.T) {
			a, b := anyInt.Draw(t, "a"), anyInt.Draw(t, "b")
			x, y, ok := evalTwo(p, row(with{"CardID": num(a)}), row(with{"CardID": num(b)}))
			conformance.MustTrue(t, !ok || compareKeys(x, y) == up*cmp.Compare(a, b),
				"%s: %d gives %s, %d gives %s", source, a, appendText(nil, x), b, appendText(nil, y))
		})
	}
}

func TestPadOfDigitsKeepsNumericOrder(t *testing.T) {
	p := compile(t, `pad(Name, 8)`)
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9]{1,9}`)
		a, b := digits.Draw(t, "a"), digits.Draw(t, "b")
		x, y, ok := evalTwo(p, row(with{"Name": str(a)}), row(with{"Name": str(b)}))
		conformance.MustEqual(t, ok, len(a) <= 8 && len(b) <= 8, "%q and %q: accepted", a, b)
		trim := func(s string) []byte { return bytes.TrimLeft([]byte(s), "0") }
		want := cmp.Or(cmp.Compare(len(trim(a)), len(trim(b))), bytes.Compare(trim(a), trim(b)))
		conformance.MustTrue(t, !ok || compareKeys(x, y) == want, "%q gives %q, %q gives %q", a, x.Bytes, b, y.Bytes)
	})
}

func TestSpliceKeepsOrderOfStrings(t *testing.T) {
	for source, sep := range map[string]rune{`splice(",", SellerID, Name)`: ',', `splice("中", SellerID, Name)`: '中'} {
		p := compile(t, source)
		text := rapid.StringOf(rapid.RuneFrom([]rune{sep, sep - 1, sep + 1, sep + 2, 'a', 'é', '国', '\U0001f600'}))
		rapid.Check(t, func(t *rapid.T) {
			a, b, c, d := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c"), text.Draw(t, "d")
			x, y, ok := evalTwo(p, row(with{"SellerID": str(a), "Name": str(b)}), row(with{"SellerID": str(c), "Name": str(d)}))
			takes := a != "" && c != ""
			for _, r := range a + b + c + d {
				takes = takes && r > sep
			}
			conformance.MustEqual(t, ok, takes, "%q %q %q %q: accepted", a, b, c, d)
			want := cmp.Or(cmp.Compare(a, c), cmp.Compare(b, d))
			conformance.MustTrue(t, !ok || compareKeys(x, y) == want, "%q, %q: %q; %q, %q: %q", a, b, x.Bytes, c, d, y.Bytes)
		})
	}
}

func TestUnorderedExpressionsPromiseNoOrder(t *testing.T) {
	for _, source := range []string{`md5(CardID, 4)`, `text(CardID)`, `reverse(Name)`, `lower(Name)`, `upper(Name)`,
		`bucket(CardID, 9)`, `salt(9)`, `substr(Name, 2)`, `substr(CardID, 1, 2)`, `month(CardID, "s")`, `Name + SellerID`,
		`CardID * 2`, `CardID + OrderNumber`, `format_time(CardID, "2006-1-2", "s")`,
		`format_time(CardID, "02-01-2006", "s")`, `format_time(CardID, "2006-01-02 15", "s", "America/New_York")`,
		`int(pad(CardID, 2, signed))`, `int(splice(",", pad(CardID, 2, signed)))`, `int(substr(Name, 1, 2))`,
		`pad(substr(Name, 1, 2), 4)`, `int(format_time(CardID, "-2006", "s"))`, `format_time(CardID, "%Y01%d", "s")`,
		`format_time(CardID, "v2-%Y", "s")`, `trim(Name)`, `CardID ?? 1`, `Paid ? Name : SellerID`,
		`CardID - CardID % OrderNumber`} {
		s, ok := single(compile(t, source).root.order)
		conformance.True(t, !ok, "%s: said to be %+v", source, s)
	}
}

// TestFixedWidthTextsKeepOrderOfNextPart tests selected expressions. TestPromisedOrderHolds tests random ones.
func TestFixedWidthTextsKeepOrderOfNextPart(t *testing.T) {
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
			if len(order) != len(want) || order[i].Order != want[i] || order[i].Order == CoarseAscending &&
				order[i].Column != "CardID" {
				t.Errorf("%s: %+v, want %v", source, order, want)
				break
			}
		}
	}
}

// drawText draws a string expression over the strings a and b, the integer n, and x, whose type varies by row.
func drawText(rnd *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "text(n)", "text(x)", `"/"`, `"1"`, `"-"`, "pad(n,2,signed)", "desc(n,\"text\")",
			"pad(a,3)", "pad(x,3)", "x", `a + "/" + b`, `a + "1" + text(n)`}[rnd.IntN(14)]
	}
	l, r := drawText(rnd, depth-1), drawText(rnd, rnd.IntN(depth))
	return fmt.Sprintf([]string{"(%s + %s)", `splice("-",%s,%s)`, `splice(",",%s,%s)`, "(sha256(%s,32) + %s)",
		"(md5(%s,2) + %s)", "(reverse(%s) + %s)", "(lower(%s) + %s)", "(pad(int(%s),2) + %s)", "(text(int(%s)+1) + %s)",
		"(text(n/2) + %s + %s)", "(substr(%s,1,1) + %s)"}[rnd.IntN(11)], l, r)
}

var programs = flag.Int("programs", 250, "random expressions by TestEqualResultsHaveEqualTellsColumns")

// TestEqualResultsHaveEqualTellsColumns evaluates random expressions for all combinations of a few values. Rows with
// equal results must have equal values in every column that Tells returns.
func TestEqualResultsHaveEqualTellsColumns(t *testing.T) {
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
				conformance.MustTrue(t, !slices.Contains(p.Tells(), in.Name) ||
					same[i].Type == row[i].Type && same[i].Int == row[i].Int && string(same[i].Bytes) == string(row[i].Bytes),
					"%s is said to tell %v, and rows %v and %v give %q", expr, p.Tells(), same, row, v.Bytes)
			}
		}
	}
	conformance.True(t, told[0] >= 8 && told[1] >= 8 && told[2]+told[3] >= 8, "expressions by columns told: %v", told)
}
