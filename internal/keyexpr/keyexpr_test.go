package keyexpr

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func TestMain(m *testing.M) { conformance.Main(m) }

// with maps columns to values that replace those of the standard row.
type with = map[string]table.Value

// inputs lists the columns used by most tests: those of the vendor's student-card example, and one of each type.
var inputs = []Input{{"CardID", table.Integer}, {"SellerID", table.String}, {"DeviceID", table.Integer},
	{"OrderNumber", table.Integer}, {"Name", table.String}, {"Score", table.Double}, {"Paid", table.Boolean},
	{"Photo", table.Binary}, {"订单号", table.String}, {"unit price", table.Integer}, {"Mixed", table.Any}}

func str(s string) table.Value  { return table.Value{Type: table.String, Bytes: []byte(s)} }
func num(i int64) table.Value   { return table.Value{Type: table.Integer, Int: i} }
func dbl(f float64) table.Value { return table.Value{Type: table.Double, Double: f} }
func yesno(b bool) table.Value  { return table.Bool(b) }
func bin(s string) table.Value  { return table.Value{Type: table.Binary, Bytes: []byte(s)} }
func row(set with) []table.Value {
	values := []table.Value{num(66661), str("a100"), num(16), num(200004), str("Zoë"), dbl(2.5), yesno(true),
		bin("\xff\x00"), str("A-1"), num(12), str("x")}
	for name, v := range set {
		for i, in := range inputs {
			if in.Name == name {
				values[i] = v
			}
		}
	}
	return values
}

func compile(t testing.TB, source string) *Program {
	t.Helper()
	return conformance.Try(Compile(source, Env{Name: "k", Columns: inputs,
		SaltColumns: []string{"CardID", "SellerID"}})).Must(t)
}

// eval returns the value of an expression as text, or the error of compiling or evaluating it.
func eval(t testing.TB, source string, set with) string {
	t.Helper()
	v, why := compile(t, source).NewEvaluator().Eval(row(set))
	if why != nil {
		return why.Code
	}
	if v.Type == table.Null {
		return "null"
	}
	return string(appendText(nil, v))
}

// TestExpressionsAgreeWithDocumentation has an expression in each line.
func TestExpressionsAgreeWithDocumentation(t *testing.T) {
	conformance.Golden(t, "documented.golden", func(source string) string { return eval(t, source, nil) })
}

// TestHashesMatchPublishedVectors has an expression in each line. Name is empty. The vendor's guide hashes the digits and
// a line feed: echo 200004 | md5sum.
func TestHashesMatchPublishedVectors(t *testing.T) {
	conformance.Golden(t, "hashes.golden", func(source string) string { return eval(t, source, with{"Name": str("")}) })
	got := eval(t, `md5(Photo)`, with{"Photo": bin("200004")})
	conformance.True(t, got == "797e5af4abd9f8d8e0cf07550e051b5c", "binary is hashed as %s", got)
}

func TestUnsuitableKeyValuesAreRejected(t *testing.T) {
	for _, tt := range []struct {
		source, column string
		value          table.Value
		code, says     string
	}{
		{`pad(DeviceID, 6)`, "DeviceID", num(1234567), table.CodeRange, "use a larger one"},
		{`pad(DeviceID, 6)`, "DeviceID", num(-1), table.CodeRange, "signed"},
		{`pad(DeviceID, 2, signed)`, "DeviceID", num(-100), table.CodeRange, "more than 2 digits"},
		{`pad(SellerID, 6)`, "SellerID", str("1-2"), table.CodeType, "other characters than digits"},
		{`pad(SellerID, 6)`, "SellerID", str(""), table.CodeRange, "want 1 to 6"},
		{`pad(Mixed, 6)`, "Mixed", dbl(1.5), table.CodeType, "int(…)"},
		{`splice(",", SellerID, Name)`, "Name", str("x,y"), CodeBreaksOrder, `','`},
		{`splice(",", SellerID, Name)`, "SellerID", str("a b"), CodeBreaksOrder, `' '`},
		{`splice(",", SellerID, Name)`, "SellerID", str(""), CodeEmptyKey, "empty"},
		{`splice("中", SellerID, Name)`, "Name", str("a"), CodeBreaksOrder, "'a'"},
		{`reverse(CardID)`, "CardID", num(-12), table.CodeRange, "negative"},
		{`desc(CardID)`, "CardID", num(-12), table.CodeRange, "negative"},
		{`int(Name)`, "Name", str("1x"), table.CodeType, `"1x"`},
		{`int(Score)`, "Score", dbl(1.5), table.CodeType, "round"},
		{`CardID + 1`, "CardID", num(1<<63 - 1), table.CodeRange, "64-bit"},
		{`CardID * 2`, "CardID", num(-1 << 63), table.CodeRange, "64-bit"},
		{`-CardID`, "CardID", num(-1 << 63), table.CodeRange, "64-bit"},
		{`10 % CardID`, "CardID", num(0), table.CodeRange, "64-bit"},
		{`Score / CardID`, "CardID", num(0), table.CodeRange, "finite"},
		{`Mixed + Name`, "Mixed", num(1), table.CodeType, "text(…)"},
		{`Mixed < Name`, "Mixed", num(1), table.CodeType, "compare"},
		{`Mixed ? 1 : 2`, "Mixed", num(1), table.CodeType, "condition"},
		{`text(Photo)`, "Photo", bin("\xff"), table.CodeUTF8, "UTF-8"},
		{`Name[0:1]`, "Name", str("é"), table.CodeUTF8, "substr"},
		{`split(Name, "-")[1]`, "Name", str("x"), CodeExpression, "out of range"},
		{`trim(pad(DeviceID, 1))`, "DeviceID", num(10), table.CodeRange, "use a larger one"},
		{`year(Name)`, "Name", str("yesterday"), table.CodeType, "2021-04-01"},
		{`year(Name, "America/New_York")`, "Name", str("2024-03-10 02:30:00"), table.CodeRange, "New_York never showed"},
		{`format_time(Name, "%d", "Pacific/Apia")`, "Name", str("2011-12-30"), table.CodeRange, "set forward"},
		{`year(CardID, "s")`, "CardID", num(1 << 60), table.CodeRange, "unit"},
		{`year(Mixed)`, "Mixed", num(5), table.CodeType, `"ms"`},
		{`upper(Mixed)`, "Mixed", num(5), "", ""},
		{`upper(Mixed)`, "Mixed", dbl(5), table.CodeType, "text(…)"},
	} {
		_, why := compile(t, tt.source).NewEvaluator().Eval(row(with{tt.column: tt.value}))
		if tt.code == "" {
			conformance.Equal(t, why, nil, "%s", tt.source)
			continue
		}
		conformance.True(t, why != nil && why.Code == tt.code && strings.Contains(why.Message, tt.says) && why.Column == "k",
			"%s: %+v, want %s and %q", tt.source, why, tt.code, tt.says)
	}
}

// TestNullGivesNullExceptForNullFunctions has an expression in each line. DeviceID is null.
func TestNullGivesNullExceptForNullFunctions(t *testing.T) {
	conformance.Golden(t, "nulls.golden", func(source string) string { return eval(t, source, with{"DeviceID": {}}) })
}

// TestCompileErrorsAreOneLine has an expression in each line.
func TestCompileErrorsAreOneLine(t *testing.T) {
	conformance.Golden(t, "errors.golden", func(source string) string {
		err := conformance.ErrorOf(Compile(source, Env{Columns: inputs}))
		conformance.InALine(t, err, "", "%s", source)
		return fmt.Sprint(err)
	})
	conformance.Refused(t, conformance.ErrorOf(Compile(strings.Repeat("(", MaxSource+1), Env{})), "limit is 16384",
		"too long")
}

func TestParseColumn(t *testing.T) {
	for text, want := range map[string]Column{
		`CardID`:                  {Name: "CardID"},
		`CardID:string`:           {Name: "CardID", Type: table.String},
		`k=a == "x:y=z" ? 1 : 2`:  {Name: "k", Expr: `a == "x:y=z" ? 1 : 2`},
		`订单号:integer = int(a)`:    {Name: "订单号", Type: table.Integer, Expr: "int(a)"},
		`a b:binary=x`:            {Name: "a b", Type: table.Binary, Expr: "x"},
		`k=splice(":", a, "b=c")`: {Name: "k", Expr: `splice(":", a, "b=c")`},
	} {
		conformance.Equal(t, conformance.Try(ParseColumn(text)).Must(t), want, "%s", text)
	}
	for text, says := range map[string]string{"k=": "no expression", "=x": "without a name", "k==x": "comparison",
		"k:text=x": "want string", "": "without a name", "#k=x": "leading #"} {
		conformance.Refused(t, conformance.ErrorOf(ParseColumn(text)), says, "%s", text)
	}
}

func TestColumnTypeMatchesExpression(t *testing.T) {
	env := Env{Columns: inputs}
	for text, want := range map[string]string{
		"k:string=pad(CardID, 9)": "string",
		"k=desc(CardID)":          "integer",
		"k:string=Mixed":          "string",
		"k:integer=pad(CardID,9)": "gives a string, but column k has type integer; wrap it in int",
		"k:string=CardID":         "gives an integer, but column k has type string; wrap it in text",
		"CardID":                  "integer",
		"Nothing":                 "unknown column",
	} {
		p, err := CompileColumn(conformance.Try(ParseColumn(text)).Must(t), env)
		conformance.True(t, (err == nil || strings.Contains(err.Error(), want)) && (err != nil || p.Type.String() == want),
			"%s: %v %v, want %s", text, p, err, want)
	}
	p := conformance.Try(CompileColumn(Column{Name: "k", Type: table.String, Expr: "Mixed"}, env)).Must(t)
	_, why := p.NewEvaluator().Eval(row(with{"Mixed": num(3)}))
	conformance.True(t, why != nil && why.Code == table.CodeType, "a value of another type: %v", why)
}

func TestInvalidKeysAreRejected(t *testing.T) {
	long := str(strings.Repeat("x", table.MaxKeyBytes))
	for _, tt := range []struct {
		source string
		value  table.Value
		first  bool
		want   string
	}{
		{"Name", long, true, ""},
		{`Name + "y"`, long, false, table.CodeKeyTooLong},
		{"Name", table.Value{}, false, table.CodeNullKey},
		{"lower(Name)", str(""), true, CodeEmptyKey},
		{"lower(Name)", str(""), false, ""},
		{"Score", long, false, table.CodeType},
	} {
		p := compile(t, tt.source)
		_, why := p.KeyValue(p.NewEvaluator(), row(with{"Name": tt.value}), tt.first)
		conformance.Equal(t, codeOf(why), tt.want, "%s", tt.source)
	}
}

func codeOf(why *table.Reason) string {
	if why == nil {
		return ""
	}
	return why.Code
}

func TestTimesAreReadFromTextAndNumbers(t *testing.T) {
	at := int64(1617242400) // 2021-04-01 02:00:00 UTC
	for _, tt := range []struct {
		source string
		value  table.Value
		want   string
	}{
		{`format_time(Mixed, "20060102150405")`, str("2021-04-01 10:00:00"), "20210401100000"},
		{`format_time(Mixed, "%Y-%m-%d", "Asia/Shanghai")`, str("2021-04-01T20:00:00Z"), "2021-04-02"},
		{`format_time(Mixed, "2006-01-02 15:04:05.000")`, str("2021-04-01T10:00:00.25"), "2021-04-01 10:00:00.250"},
		{`format_time(Mixed, "200601", "s")`, num(at), "202104"},
		{`format_time(Mixed, "15", "ms", "Asia/Shanghai")`, num(at * 1000), "10"},
		{`format_time(Mixed, "15", "Asia/Shanghai", "us")`, num(at * 1e6), "10"},
		{`format_time(Mixed, "2006 .000000000", "ns")`, num(-1), "1969 .999999999"},
		{`format_time(Mixed, "15:04")`, str("2021-04-01 10:30"), "10:30"},
		{`year(Mixed)`, str("2021-04-01"), "2021"},
		{`format_time(Mixed, "v2-%Y%%%S%f")`, str("2021-04-01 10:00:07.25"), "v2-2021%07250000"},
		{`format_time(Mixed, "%H%M Jan")`, str("2021-04-01 10:30"), "1030 Jan"},
		{`format_time(Mixed, "2006")`, str("9999-12-31T23:59:59-08:00"), table.CodeRange},
		{`year(Mixed)`, str("0000-01-01T00:00:00+08:00"), table.CodeRange},
		{`month(Mixed, "s")`, num(at), "4"},
		{`pad(day(Mixed, "s", "Asia/Shanghai"), 2)`, num(at), "01"},
		{`year(Mixed)`, str("2021-02-30"), table.CodeType},
		{`year(Mixed)`, yesno(true), table.CodeType},
	} {
		conformance.Equal(t, eval(t, tt.source, with{"Mixed": tt.value}), tt.want, "%s of %v", tt.source, tt.value)
	}
}

func TestLookupReplacesNamesWithCodes(t *testing.T) {
	files := map[string]string{"codes.csv": "\ufeffname,code\nZoë,z1\n\"a,b\",7\n", "twice.csv": "a,1\na,2\n",
		"three.csv": "a,b,c\n", "none.csv": "", "nocode.csv": "a,\n", "latin.csv": "a,\xff\n", "quote.csv": "a,\"b\n"}
	env := Env{Columns: inputs, ReadFile: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}}
	p, err := Compile(`splice(",", lookup(Name, "codes.csv"), lookup(SellerID, "codes.csv", "keep"))`, env)
	conformance.Must(t, err)
	conformance.True(t, len(p.Files) == 1 && p.Files[0].Name == "codes.csv" && len(p.Files[0].SHA256) == 64, "%+v", p)
	v, why := p.NewEvaluator().Eval(row(nil))
	conformance.True(t, why == nil && string(v.Bytes) == "z1,a100", "%q, %v", v.Bytes, why)
	_, why = p.NewEvaluator().Eval(row(with{"Name": str("Zoe")}))
	conformance.Equal(t, codeOf(why), CodeUnknownName, "an unknown name: %v", why)
	for name, says := range map[string]string{"twice.csv": "line 2", "three.csv": "3 columns", "none.csv": "no names",
		"nocode.csv": "no code", "latin.csv": "not valid UTF-8", "quote.csv": "quote", "absent.csv": "not exist"} {
		conformance.Refused(t, conformance.ErrorOf(Compile(`lookup(Name, "`+name+`")`, env)), says, "%s", name)
	}
}

func TestSeparatorSortsBelowAllCharacters(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   rune
	}{{nil, ','}, {[]string{"", "中文"}, ','}, {[]string{"a-b", "c.d"}, ','}, {[]string{"a,b"}, '!'},
		{[]string{"a b"}, '\x1f'}, {[]string{"a\nb"}, '\t'}, {[]string{"\t"}, '\x01'}, {[]string{"\x01"}, 0}} {
		var c SeparatorChooser
		for _, v := range tt.values {
			c.Observe([]byte(v))
		}
		got, err := c.Choose()
		conformance.True(t, got == tt.want && (err == nil) == (tt.want != 0), "%q: %q, %v", tt.values, got, err)
	}
}

func TestSpliceAutoObservesSampleFirst(t *testing.T) {
	env := Env{Columns: inputs}
	source := `splice(auto, upper(SellerID), Name)`
	p, err := Compile(source, env)
	conformance.MustTrue(t, err == nil && p.Auto, "%v %v", p, err)
	_, why := p.NewEvaluator().Eval(row(nil))
	conformance.Equal(t, codeOf(why), CodeExpression, "without a separator: %v", why)
	var c SeparatorChooser
	e := p.Observer(&c)
	for _, name := range []string{"x+y", "a,b"} {
		_, why := e.Eval(row(with{"Name": str(name)}))
		conformance.MustTrue(t, why == nil, "%v", why)
	}
	env.Separator, err = c.Choose()
	conformance.MustTrue(t, err == nil && env.Separator == '!', "%q, %v", env.Separator, err)
	p = conformance.Try(Compile(source, env)).Must(t)
	v, why := p.NewEvaluator().Eval(row(with{"Name": str("a,b")}))
	conformance.True(t, why == nil && string(v.Bytes) == "A100!a,b", "%q, %v", v.Bytes, why)
	_, why = p.NewEvaluator().Eval(row(with{"Name": str("a b")}))
	conformance.Equal(t, codeOf(why), CodeBreaksOrder, "a later value that breaks it: %v", why)
}

func TestWhereAcceptsAnyColumns(t *testing.T) {
	row := with{
		"age": {Type: table.Integer, Int: 18}, "city": {Type: table.String, Bytes: []byte("Hangzhou")},
		"paid": {Type: table.Boolean, Int: 1}, "ratio": {Type: table.Double, Double: 0.5},
	}
	for text, want := range map[string]bool{
		`age >= 18`: true, `age > 18`: false, `age >= 18 and city == "Hangzhou"`: true, `paid`: true, `not paid`: false,
		`ratio < 1 or nobody > 3`: true, `nobody > 3`: false, `nobody == nil`: true, `upper(city) == "HANGZHOU"`: true,
	} {
		w := conformance.Try(CompileWhere(text)).Must(t)
		got, why := w.NewTest().Passes(func(name string) table.Value { return row[name] })
		conformance.True(t, got == want && why == nil, "%s is %v, %v", text, got, why)
	}
}

func TestWhereMustBeBoolean(t *testing.T) {
	for text, want := range map[string]string{`md5(city)`: "not a condition", `age +`: "unexpected",
		`random() > 1`: "not available"} {
		conformance.Refused(t, conformance.ErrorOf(CompileWhere(text)), want, "%s", text)
	}
	w := conformance.Try(CompileWhere(`age`)).Must(t)
	_, why := w.NewTest().Passes(func(string) table.Value { return table.Value{Type: table.Integer, Int: 1} })
	conformance.True(t, why != nil, "1 is neither true nor false")
}

func TestProgramIsSafeForConcurrentUse(t *testing.T) {
	p := compile(t, `trim(SellerID) + pad(CardID, 9) + salt(7) + (split(Name, "x")[0] | upper())`)
	var group sync.WaitGroup
	for worker := range int64(4) {
		group.Go(func() {
			e := p.NewEvaluator()
			for i := range int64(200) {
				card := worker*1000 + i
				v, why := e.Eval(row(with{"CardID": num(card)}))
				want := fmt.Sprintf("a100%09d", card)
				conformance.True(t, why == nil && strings.HasPrefix(string(v.Bytes), want), "%q, %v, want %s…", v.Bytes, why, want)
			}
		})
	}
	group.Wait()
}

func TestExplanationOfDeepExpressionIsShort(t *testing.T) {
	deep := `pad(CardID, 5, signed)`
	for range 200 {
		deep = `(` + deep + ` ?? Name)`
	}
	p := compile(t, deep)
	n := len(p.root.python) + len(p.root.recipe)
	conformance.True(t, n <= 2*maxRecipe, "%d bytes of explanation", n)
	conformance.Equal(t, eval(t, deep, with{"CardID": {}}), "Zoë", "what it gives")
}

func TestPlainFunctionsDoNotAllocate(t *testing.T) {
	for _, source := range []string{`splice(",", pad(DeviceID, 6), SellerID, CardID)`,
		`md5(OrderNumber, 4) + text(OrderNumber)`, `salt(100) + reverse(CardID) + substr(Name, 1, 2) + upper(Name)`,
		`format_time(OrderNumber, "2006010215", "s")`, `desc(CardID)`, `Score > 2 ? xxhash(Name, 4) : crc32(Name, 4)`} {
		e := compile(t, source).NewEvaluator()
		values := row(nil)
		var why *table.Reason
		n := testing.AllocsPerRun(100, func() { _, why = e.Eval(values) })
		conformance.True(t, n == 0 && why == nil, "%s: %v allocations, %v", source, n, why)
	}
}

// TestExpressionsHaveABudget evaluates expressions that would take hours or all memory without a budget.
func TestExpressionsHaveABudget(t *testing.T) {
	for _, source := range []string{
		"reduce(1..40, #acc + #acc, s)",
		"reduce(1..40, replace(#acc, 'a', 'aa'), s)",
		"reduce(1..40, join([#acc, #acc]), s)",
		"reduce(1..40, upper(#acc + #acc), s)",
		"toJSON(reduce(1..40, [#acc, #acc], [s]))",
		"len(flatten(reduce(1..40, [#acc, #acc], [s])))",
		"any([1], reduce(1..40, [#acc, #acc], [s]) == reduce(1..40, [#acc, #acc], [s]))",
		"len(repeat(s, 1000000))",
		"len(repeat(repeat(s, 1000000), 1000000))",
		"len(replace(repeat(s, 3000), '', repeat(s, 3000)))",
		"count(1..100000, count(1..100000, # > 0) > 0)",
		"len(map(1..900000, map(1..900000, #)))",
		"len(uniq(1..900000))",
		"len(join(map(1..100000, s), repeat(s, 1000)))",
		"let a = s+s+s+s+s+s+s+s; let b = a+a+a+a+a+a+a+a; let c = b+b+b+b+b+b+b+b; let d = c+c+c+c+c+c+c+c; let e = " +
			"d+d+d+d+d+d+d+d; let f = e+e+e+e+e+e+e+e; len(f+f+f+f+f+f+f+f)",
	} {
		p := conformance.Try(Compile(source, Env{Name: "k", Columns: []Input{{Name: "s", Type: table.String}}})).Must(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		_, why := p.NewEvaluator().Eval([]table.Value{{Type: table.String, Bytes: []byte(strings.Repeat("a", 100))}})
		runtime.ReadMemStats(&after)
		conformance.True(t, why != nil && why.Code == CodeExpression, "%s: refused with %v", source, why)
		n := (after.TotalAlloc - before.TotalAlloc) >> 20
		conformance.True(t, n <= 256, "%s: %d MiB were allocated", source, n)
		t.Logf("%v %d MiB %v: %v", time.Since(begun), (after.TotalAlloc-before.TotalAlloc)>>20, source, why)
	}
}

func TestJoinedTextsHaveABudget(t *testing.T) {
	p, err := Compile("s"+strings.Repeat(" + s", 200), Env{Name: "k", Columns: []Input{{Name: "s", Type: table.String}}})
	conformance.Must(t, err)
	row := []table.Value{{Type: table.String, Bytes: make([]byte, 1<<20)}}
	e := p.NewEvaluator()
	_, why := e.Eval(row)
	conformance.True(t, why != nil && why.Code == CodeExpression && cap(e.buf) <= 4*workBudget, "%v, %d", why, cap(e.buf))
	row[0].Bytes = []byte("x")
	v, why := e.Eval(row)
	conformance.True(t, why == nil && len(v.Bytes) == 201, "%d bytes, %v", len(v.Bytes), why)
}

func TestBudgetDoesNotChangeResults(t *testing.T) {
	for source, want := range map[string]string{
		"reduce(1..3, #acc + #acc, s)":                                "abababababababab",
		"replace(upper(s), 'A', 'x')":                                 "xB",
		"join(map(split(s, ''), # + '-'), ',')":                       "a-,b-",
		"repeat(s, 2) + toJSON([1, s])":                               "abab[\n  1,\n  \"ab\"\n]",
		"text(count(1..10, # % 2 == 0)) + text(1 + 2)":                "53",
		"s contains 'b' and len(s) == 2 ? fromJSON('[1]')[0] + 1 : 0": "2",
		"join(uniq(split(s + s, '')), '')":                            "ab",
	} {
		p := conformance.Try(Compile(source, Env{Name: "k", Columns: []Input{{Name: "s", Type: table.String}}})).Must(t)
		v, why := p.NewEvaluator().Eval([]table.Value{{Type: table.String, Bytes: []byte("ab")}})
		conformance.True(t, why == nil && string(appendText(nil, v)) == want, "%s: %v, %v, want %q", source, v, why, want)
	}
}
