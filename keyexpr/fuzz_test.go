package keyexpr

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"tsimport/internal/table"
)

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
