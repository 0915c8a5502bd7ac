package reader

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tsimport/table"
)

func convertOne(col table.Column, text string) (table.Value, *table.Reason) {
	col.Source = "c"
	c, err := NewConverter([]string{"c"}, []table.Column{col}, nil)
	if err != nil {
		panic(err)
	}
	values, why := c.Convert(Record{Fields: []Field{{Text: []byte(text), Quoted: true}}})
	if why != nil {
		return table.Value{}, why
	}
	return values[0], nil
}

func TestValuesFitOrAreRefusedAndNeverChanged(t *testing.T) {
	integer := table.Column{Type: table.Integer}
	double := table.Column{Type: table.Double}
	boolean := table.Column{Type: table.Boolean}
	exact := func(c table.Column) table.Column { c.Exact = true; return c }
	num := func(v int64) table.Value { return table.Value{Type: table.Integer, Int: v} }
	dbl := func(v float64) table.Value { return table.Value{Type: table.Double, Double: v} }
	for _, tt := range []struct {
		col  table.Column
		text string
		want table.Value
		code string
	}{
		{integer, "0", num(0), ""},
		{integer, "-7", num(-7), ""},
		{integer, "+5", num(5), ""},
		{integer, "007", num(7), ""},
		{integer, "9223372036854775807", num(math.MaxInt64), ""},
		{integer, "-9223372036854775808", num(math.MinInt64), ""},
		{integer, "9223372036854775808", table.Value{}, table.CodeRange},
		{integer, "-9223372036854775809", table.Value{}, table.CodeRange},
		{integer, "99999999999999999999999", table.Value{}, table.CodeRange},
		{integer, "1.0", table.Value{}, table.CodeType},
		{integer, "1e3", table.Value{}, table.CodeType},
		{integer, "", table.Value{}, table.CodeType},
		{integer, "-", table.Value{}, table.CodeType},
		{integer, " 1", table.Value{}, table.CodeType},
		{integer, "99999999999999999999x", table.Value{}, table.CodeType},
		{exact(integer), "12", num(12), ""},
		{exact(integer), "-12", num(-12), ""},
		{exact(integer), "007", table.Value{}, table.CodeNotCanonical},
		{exact(integer), "+5", table.Value{}, table.CodeNotCanonical},
		{exact(integer), "-0", table.Value{}, table.CodeNotCanonical},

		{double, "1.5", dbl(1.5), ""},
		{double, "10.50", dbl(10.5), ""},
		{double, "1e3", dbl(1000), ""},
		{double, "-.5", dbl(-0.5), ""},
		{double, "1e400", table.Value{}, table.CodeRange},
		{double, "1e-400", table.Value{}, table.CodeRange},
		{double, "0e-400", dbl(0), ""},
		{double, "NaN", table.Value{}, table.CodeType},
		{double, "Inf", table.Value{}, table.CodeType},
		{double, "-Infinity", table.Value{}, table.CodeType},
		{double, "0x1p-2", table.Value{}, table.CodeType},
		{double, "1_000", table.Value{}, table.CodeType},
		{double, "", table.Value{}, table.CodeType},
		{double, "1.2.3", table.Value{}, table.CodeType},
		{exact(double), "1.5", dbl(1.5), ""},
		{exact(double), "10.50", table.Value{}, table.CodeNotCanonical},
		{exact(double), "1e3", table.Value{}, table.CodeNotCanonical},
		{exact(double), "12345678901234567890", table.Value{}, table.CodeNotCanonical},

		{boolean, "true", table.Value{Type: table.Boolean, Int: 1}, ""},
		{boolean, "No", table.Value{Type: table.Boolean}, ""},
		{boolean, "2", table.Value{}, table.CodeType},
		{exact(boolean), "TRUE", table.Value{}, table.CodeNotCanonical},
		{exact(boolean), "false", table.Value{Type: table.Boolean}, ""},

		{table.Column{Type: table.String}, "", table.Value{Type: table.String, Bytes: []byte{}}, ""},
		{table.Column{Type: table.String}, "a\x00é", table.Value{Type: table.String, Bytes: []byte("a\x00é")}, ""},
		{table.Column{Type: table.String}, "a\xff", table.Value{}, table.CodeUTF8},
		{table.Column{Type: table.String}, "\xed\xa0\x80", table.Value{}, table.CodeUTF8},

		{table.Column{Type: table.Binary}, "AP8=", table.Value{Type: table.Binary, Bytes: []byte{0, 0xff}}, ""},
		{table.Column{Type: table.Binary}, "AP9=", table.Value{}, table.CodeType}, // bits that would be dropped
		{table.Column{Type: table.Binary}, "AP8", table.Value{}, table.CodeType},
		{table.Column{Type: table.Binary, Hex: true}, "00fF", table.Value{Type: table.Binary, Bytes: []byte{0, 0xff}}, ""},
		{table.Column{Type: table.Binary, Hex: true}, "00f", table.Value{}, table.CodeType},
	} {
		got, why := convertOne(tt.col, tt.text)
		code := ""
		if why != nil {
			code = why.Code
		}
		if code != tt.code || !cmp.Equal(got, tt.want) {
			t.Errorf("%s (exact %v) of %q: %+v %q, want %+v %q", tt.col.Type, tt.col.Exact, tt.text, got, code, tt.want, tt.code)
		}
	}
}

func TestNullsAreUnquoted(t *testing.T) {
	columns := []table.Column{{Source: "a", Name: "x", Type: table.String}, {Source: "b", Name: "y", Type: table.Integer}}
	c, err := NewConverter([]string{"b", "a"}, columns, []string{"NULL", `\N`})
	if err != nil {
		t.Fatal(err)
	}
	convert := func(b, a Field) []table.Type {
		values, why := c.Convert(Record{Fields: []Field{b, a}})
		if why != nil {
			t.Fatalf("%v", why)
		}
		return []table.Type{values[0].Type, values[1].Type}
	}
	plain := func(s string) Field { return Field{Text: []byte(s)} }
	quoted := func(s string) Field { return Field{Text: []byte(s), Quoted: true} }
	for _, tt := range []struct {
		b, a Field
		want []table.Type
	}{
		{plain("1"), plain("v"), []table.Type{table.String, table.Integer}},
		{plain(""), plain(""), []table.Type{table.Null, table.Null}},
		{plain(`\N`), plain("NULL"), []table.Type{table.Null, table.Null}},
		{plain("2"), quoted(""), []table.Type{table.String, table.Integer}},
		{plain("3"), quoted("NULL"), []table.Type{table.String, table.Integer}},
	} {
		if diff := cmp.Diff(tt.want, convert(tt.b, tt.a)); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", tt.b.Text, tt.a.Text, diff)
		}
	}
	if _, why := c.Convert(Record{Fields: []Field{plain("1")}}); why == nil || why.Code != table.CodeRagged {
		t.Errorf("a ragged record: %v", why)
	}
	if _, why := c.Convert(Record{Fields: []Field{plain("x"), plain("v")}}); why == nil || why.Column != "y" || why.Value != "x" {
		t.Errorf("the reason does not name column and value: %v", why)
	}
	if _, err := NewConverter([]string{"a"}, columns, nil); err == nil {
		t.Error("a missing column was accepted")
	}
}

func TestTypesAreInferredOnlyFromCanonicalText(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   table.Type
	}{
		{[]string{"1", "-5", "0"}, table.Integer},
		{[]string{"1", "007"}, table.String},
		{[]string{"1", "+5"}, table.String},
		{[]string{"1", "9223372036854775808"}, table.String},
		{[]string{"1", "2.5"}, table.Double},
		{[]string{"1.5", "10.50"}, table.String},
		{[]string{"1.5", "1e3"}, table.String},
		{[]string{"1.5", "NaN"}, table.String},
		{[]string{"true", "false"}, table.Boolean},
		{[]string{"true", "TRUE"}, table.String},
		{[]string{"1", "true"}, table.String},
		{[]string{"", "", "3"}, table.Integer},
		{[]string{"", ""}, table.String},
		{[]string{"NULL", "3"}, table.Integer},
		{nil, table.String},
	} {
		in := NewInference(1, []string{"NULL"})
		for _, v := range tt.values {
			in.Add(Record{Fields: []Field{{Text: []byte(v)}}})
		}
		in.Add(Record{Fields: []Field{{Text: []byte("x")}, {Text: []byte("ragged")}}})
		if got := in.Type(0); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.values, got, tt.want)
		}
	}
	in := NewInference(1, nil)
	in.Add(Record{Fields: []Field{{Text: []byte(""), Quoted: true}}})
	in.Add(Record{Fields: []Field{{Text: []byte("1")}}})
	if got := in.Type(0); got != table.String {
		t.Errorf("a quoted empty string among integers: %s", got)
	}
}
