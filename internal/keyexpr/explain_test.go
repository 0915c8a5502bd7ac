package keyexpr

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// design compiles the columns of a key, which are written as for --pk.
func design(t *testing.T, env Env, columns ...string) Design {
	t.Helper()
	d := Design{Inputs: env.Columns}
	for _, text := range columns {
		col := conformance.Try(ParseColumn(text)).Must(t)
		d.Columns, d.Programs = append(d.Columns, col), append(d.Programs, conformance.Try(CompileColumn(col, env)).Must(t))
	}
	return d
}

// records lists the input columns of the published designs: logs, time series and trade records.
var records = []Input{{"host", table.String}, {"event", table.String}, {"time", table.Integer},
	{"seller", table.String}, {"buyer", table.String}, {"order", table.Integer}}

func TestPublishedDesignsAreExplained(t *testing.T) {
	env := Env{Columns: records, SaltColumns: []string{"order"}}
	values := []table.Value{str("web1"), str("login"), num(1617242400), str("s7"), str("b9"), num(42)}
	for _, tt := range []struct {
		key, want []string
		ranges    map[string]string
	}{
		{[]string{"host", "event", "time"}, []string{"web1", "login", "1617242400"},
			map[string]string{"host": "yes", "event": "with a prefix", "time": "with a prefix"}},
		{[]string{"host", "event", "time=desc(time)"}, []string{"web1", "login", "9223372035237533407"},
			map[string]string{"host": "yes", "event": "with a prefix", "time": "with a prefix"}},
		{[]string{`bucket=format_time(time, "2006010215", "s")`, "time", "host", "event"},
			[]string{"2021040102", "1617242400", "web1", "login"},
			map[string]string{"time": "yes", "host": "with a prefix", "event": "with a prefix"}},
		{[]string{`bucket=bucket(time - time % 3600, 7)`, "time", "host"}, []string{"4", "1617242400", "web1"},
			map[string]string{"time": "many", "host": "with a prefix"}},
		{[]string{"seller", "time", "order"}, []string{"s7", "1617242400", "42"},
			map[string]string{"seller": "yes", "time": "with a prefix", "order": "with a prefix"}},
		{[]string{"buyer", "time", "order"}, []string{"b9", "1617242400", "42"},
			map[string]string{"buyer": "yes", "time": "with a prefix", "order": "with a prefix"}},
		{[]string{"order=md5(order,4) + text(order)"}, []string{"a1d042"}, map[string]string{"order": "no"}},
		{[]string{"order=md5(order,2) + pad(order, 12)"}, []string{"a1000000000042"}, map[string]string{"order": "many"}},
		{[]string{"salt=salt(16)", "order"}, []string{"15", "42"}, map[string]string{"order": "many"}},
	} {
		x := Explain(design(t, env, tt.key...), [][]table.Value{values}, nil, nil)
		conformance.Same(t, x.Examples[0].Key, tt.want, "%q: %+v", tt.key, x.Examples[0])
		ranges := map[string]string{}
		for _, r := range x.Ranges {
			ranges[r.Column] = r.Use
		}
		conformance.True(t, maps.Equal(ranges, tt.ranges), "%q: ranges %v, want %v", tt.key, ranges, tt.ranges)
	}
}

func TestExplanationForReaders(t *testing.T) {
	env := Env{Columns: inputs, Separator: '!', ReadFile: func(string) ([]byte,
		error) {
		return []byte("Zoë,z\nZoe,z\nx,1\n"), nil
	}}
	x := Explain(design(t, env, `k=splice(auto, md5(CardID,2), pad(DeviceID,6), lookup(Name, "codes.csv"))`, "Score"),
		[][]table.Value{row(nil), row(with{"DeviceID": num(-1)})}, nil, nil)
	text := x.Text()
	for _, want := range []string{
		`k (string) = splice(auto, md5(CardID,2)`,
		`joined with "!": the first 2 hexadecimal digits of the md5 of CardID, DeviceID as 6 decimal digits with leading zeros, the code of Name in codes.csv`,
		`"!".join([(hashlib.md5(str(CardID).encode()).hexdigest())[:2], str(DeviceID).zfill(6), codes("codes.csv")[Name]])`,
		`codes = lambda name: dict(csv.reader(`,
		"Rows are sorted by the value of md5(CardID, 2), which preserves no column's order; within that by DeviceID",
		"GetRange over DeviceID: many: in up to 256 ranges",
		"GetRange over CardID: no",
		"rejected: WrongType: column Score",
		"OutOfRange: column k: pad(DeviceID, 6): -1 is negative",
		`takes "!"`,
		"the keys depend on codes.csv",
		"2 names in codes.csv share a code with another name",
		"with a random prefix",
		"a primary-key column cannot be a double",
	} {
		conformance.Contains(t, text, want, "text")
	}
	data := conformance.Try(json.Marshal(x)).Must(t)
	var fields map[string]any
	conformance.Must(t, json.Unmarshal(data, &fields))
	for _, name := range []string{"key", "order", "ranges", "examples", "notes", "files"} {
		conformance.True(t, fields[name] != nil, "no field %q in %s", name, data)
	}
}

func TestMissingPythonFormulaIsOmitted(t *testing.T) {
	x := Explain(design(t, Env{Columns: inputs}, `k=trim(Name) + pad(CardID, 9)`), nil, nil, nil)
	conformance.True(t, x.Key[0].Python == "" && strings.Contains(x.Key[0].Recipe, "trim(Name)"), "%+v", x.Key[0])
}

func TestPythonKeywordsAreNotVariables(t *testing.T) {
	e := Env{Columns: []Input{{"str", table.Integer}, {"class", table.String}, {"v", table.String}, {"a$", table.String}}}
	x := Explain(design(t, e, `k=splice(",", pad(str, 3), class, v) + a$`), nil, nil, nil)
	conformance.Equal(t, x.Key[0].Python, `(",".join([str(row["str"]).zfill(3), row["class"], v]) + row["a$"])`, "python")
}

// pythonCheck is a script that computes the formulas of each case and prints those that give a different key.
const pythonCheck = `
import json, sys
for case in json.load(sys.stdin):
    env = {}
    for line in case["setup"] or []:
        exec(line, env)
    for row, want in zip(case["rows"], case["keys"]):
        scope = dict(env, row=row, **row)
        try:
            got = str(eval(case["python"], scope))
        except Exception as e:
            got = repr(e)
        if got != want:
            print(case["source"], case["python"], row, "is", want, "and in Python", got)
`

func TestPythonFormulasComputeSameKeys(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	t.Chdir(t.TempDir())
	conformance.Must(t, os.WriteFile("codes.csv", []byte("Zoë,z\n"), 0o600))
	rows := [][]table.Value{row(nil)}
	for i, text := range []string{"straße", "İiΣ", "中,文\U0001f600", "", "Zoë"} {
		sign := int64(1 - i%2*2)
		rows = append(rows, row(with{"CardID": num(sign * int64(i) * 7919), "Name": str(text), "Paid": yesno(i%2 == 0),
			"Score": dbl([]float64{0, -2, 1e22, 1.5e-9, 123456789012345680}[i]), "订单号": [...]table.Value{str("a"), {}}[i%2]}))
	}
	var cases []map[string]any
	for _, source := range []string{`pad(CardID, 6, signed)`, `splice(",", pad(DeviceID,6), SellerID, CardID)`,
		`md5(OrderNumber,4) + text(OrderNumber)`, `sha256(Score, 9)`, `crc32(Paid)`, `bucket(CardID, 100)`,
		`bucket(Score, 100)`, `bucket(Name, 7)`, `salt(1000)`, `salt(1000, 订单号, Score, Paid, Name)`, `desc(OrderNumber)`,
		`desc(OrderNumber, "text")`, `lookup(Name, "codes.csv", "keep")`, `text(Score)`, `text(Paid)`, `lower(Name)`,
		`upper(Name)`, `substr(Name, 2)`, `reverse(Name)`, `reverse(OrderNumber)`, `CardID % 7`, `CardID % -7`,
		`CardID - CardID % 3600`, `text(Paid && CardID > 5 || not (Score < 2))`, `col("unit price") * -3 + CardID`,
		`format_time(CardID, "2006010215", "s")`, `format_time(CardID, "v2-%Y%%%j%f", "ms", "Asia/Shanghai")`,
		`year("2021-11-07T23:30:00-05:00", "Asia/Shanghai") + month("2021-11-07 10:30")`, `Paid ? Name : SellerID`,
		`订单号 ?? "none"`, `text(订单号 == nil)`} {
		d := design(t, Env{Columns: inputs, SaltColumns: []string{"CardID", "SellerID"}}, "k="+source)
		x := Explain(d, nil, nil, nil)
		conformance.True(t, x.Key[0].Python != "", "%s: no formula", source)
		var keys []string
		var values []map[string]any
		for _, r := range rows {
			v, why := d.Programs[0].NewEvaluator().Eval(r)
			conformance.MustEqual(t, why, nil, "reason")
			keys = append(keys, string(appendText(nil, v)))
			set := map[string]any{}
			for i, in := range inputs {
				if set[in.Name] = box(r[i]); in.Type == table.Binary {
					delete(set, in.Name)
				}
			}
			values = append(values, set)
		}
		cases = append(cases, map[string]any{"source": source, "setup": x.PythonSetup, "python": x.Key[0].Python,
			"rows": values, "keys": keys})
	}
	data := conformance.Try(json.Marshal(cases)).Must(t)
	// JSON does not distinguish integral doubles from integers, but the table's SDK gives Python a float.
	check := strings.Replace(pythonCheck, "scope = dict", `row["Score"] = float(row["Score"]); scope = dict`, 1)
	cmd := exec.CommandContext(t.Context(), python, "-c", check)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.CombinedOutput()
	conformance.True(t, err == nil && len(out) == 0, "%v\n%s", err, out)
}

// expression draws an expression over CardID, Name and SellerID whose value is a number or a string.
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

// compareColumns compares a column of two rows as text and, if possible, as numbers.
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

// TestPromisedOrderHolds draws expressions and, for each, rows. The keys of any two rows must be in the order that the
// segments promise, and each segment must be in the promised order of its column.
func TestPromisedOrderHolds(t *testing.T) {
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
			r := row(with{"CardID": num(ints.Draw(t, "c")), "Name": str(text.Draw(t, "n")), "SellerID": str(text.Draw(t, "s"))})
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
				part, err = Compile(s.Text, Env{Columns: inputs})
				conformance.MustTrue(t, err == nil, "%s: segment %s: %v", source, s.Text, err)
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
			conformance.MustTrue(t, textOK || numberOK, "%s: %s is said to be %s in %s", source, s.Text, s.Order, s.Column)
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

// FuzzCompile compiles any text and evaluates programs that compile. Nothing may panic, errors must be one line, and
// values must have the promised type.
func FuzzCompile(f *testing.F) {
	for _, source := range []string{`splice(",", pad(DeviceID,6), SellerID, CardID)`,
		`md5(text(OrderNumber)+"\n", 4) + text(OrderNumber)`, `let x = CardID; pad(x, 5)`, `map([1,2], # + CardID)[0]`,
		`col("unit price") ?? 1`, `splice(auto, Name, SellerID)`, `salt(5)`, `Paid ? Name : nil`, `CardID | pad(9) | upper()`,
		`format_time(Name, "%Y", "Asia/Shanghai")`, `"\xff" + Name`, `-9223372036854775808 + CardID`,
		`trim(Name)[:2] matches "a"`, `{"a": CardID}.a`, `Name.x`, `pad(pad, 2)`, `1..CardID`, `a?.b`, `Mixed in [1]`,
		`if Paid { 1 } else { 2 }`} {
		f.Add(source, "a,b", int64(7))
	}
	f.Fuzz(func(t *testing.T, source, text string, n int64) {
		env := Env{Columns: inputs, SaltColumns: []string{"CardID"}, Separator: ',',
			ReadFile: func(string) ([]byte, error) { return nil, errors.New("no files here") }}
		p, err := Compile(source, env)
		if err != nil {
			conformance.MustTrue(t, !utf8.ValidString(source) || !strings.Contains(err.Error(), "\n"), "over a line: %q", err)
			return
		}
		if strings.Contains(source, "..") || strings.Contains(source, "repeat") {
			return // only the language's own budget limits long lists, and exceeding it takes a long time
		}
		values := row(with{"Name": str(strings.ToValidUTF8(text, "")), "Mixed": {}, "CardID": num(n)})
		v, why := p.NewEvaluator().Eval(values)
		conformance.MustTrue(t, why != nil || v.Type == table.Null || p.Type == table.Any || v.Type == p.Type,
			"%s: %v, promised %v", source, v.Type, p.Type)
		if again, whyAgain := p.NewEvaluator().Eval(values); (why == nil) != (whyAgain == nil) ||
			string(appendText(nil, v)) != string(appendText(nil, again)) {
			t.Fatalf("%s: %v %v, then %v %v", source, v, why, again, whyAgain)
		}
		Explain(Design{Columns: []Column{{Name: "k", Expr: source}}, Programs: []*Program{p}, Inputs: inputs},
			[][]table.Value{values}, nil, nil).Text()
	})
}
