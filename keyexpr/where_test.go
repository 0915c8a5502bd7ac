package keyexpr

import (
	"strings"
	"testing"

	"tsimport/internal/table"
)

func TestAConditionPassesRowsOfAnyColumns(t *testing.T) {
	row := map[string]table.Value{
		"age": {Type: table.Integer, Int: 18}, "city": {Type: table.String, Bytes: []byte("Hangzhou")},
		"paid": {Type: table.Boolean, Int: 1}, "ratio": {Type: table.Double, Double: 0.5},
	}
	for text, want := range map[string]bool{
		`age >= 18`: true, `age > 18`: false, `age >= 18 and city == "Hangzhou"`: true, `paid`: true, `not paid`: false,
		`ratio < 1 or nobody > 3`: true, `nobody > 3`: false, `nobody == nil`: true, `upper(city) == "HANGZHOU"`: true,
	} {
		w, err := CompileWhere(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, why := w.NewTest().Passes(func(name string) table.Value { return row[name] }); got != want || why != nil {
			t.Errorf("%s is %v, %v", text, got, why)
		}
	}
}

func TestAConditionIsTrueOrFalse(t *testing.T) {
	for text, want := range map[string]string{`md5(city)`: "true or false", `age +`: "unexpected", `random() > 1`: "not available"} {
		if _, err := CompileWhere(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	w, err := CompileWhere(`age`)
	must(t, err)
	if _, why := w.NewTest().Passes(func(string) table.Value { return table.Value{Type: table.Integer, Int: 1} }); why == nil {
		t.Error("1 is neither true nor false")
	}
}
