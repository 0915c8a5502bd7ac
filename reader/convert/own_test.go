package convert

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// jsonDatum returns the datum that the JSON parser returns for text.
func jsonDatum(text string) record.Datum {
	switch text[0] {
	case 'n':
		return record.Datum{}
	case 't':
		return record.Datum{Kind: record.Boolean, Int: 1}
	case 'f':
		return record.Datum{Kind: record.Boolean}
	case '"':
		return record.Datum{Kind: record.String, Bytes: []byte(text[1 : len(text)-1])}
	case '{', '[':
		return record.Datum{Kind: record.JSON, Bytes: []byte(text)}
	}
	return record.Datum{Kind: record.Number, Bytes: []byte(text)}
}

// sampled returns the column inferred from a sample.
func sampled(sample []record.Datum) (table.Column, *Inference) {
	in := NewInference(1, Options{})
	for _, d := range sample {
		in.Add(&record.Record{Fields: []record.Datum{d}})
	}
	col := table.Column{Name: "c", Type: in.Type(0), Exact: true, Inferred: true}
	col.Own = in.Own(0, col.Type)
	return col, in
}

// TestTypeFitsIfAllSampledValuesSurvive puts the deviating value first, in the middle and last.
func TestTypeFitsIfAllSampledValuesSurvive(t *testing.T) {
	all := []table.Type{table.Integer, table.Double, table.Boolean, table.String, table.Binary}
	for values, want := range map[string]string{
		"1 2 3": "integer double", "9007199254740993": "integer", "1 9007199254740993 2": "integer", "1.5 2 3": "double",
		"1 2.5 3": "double", "1 2 3.5": "double", "1.5 9007199254740993": "", "9007199254740993 1.5": "",
		"true false": "boolean", "true 1": "", `"a" "b"`: "string", `"a" 1`: "", `1 "a"`: "",
		"100000000000000000000": "string", "1 100000000000000000000": "", "null": "integer double boolean string binary",
		"null 1 null": "integer double",
	} {
		var sample []record.Datum
		for text := range strings.FieldsSeq(values) {
			sample = append(sample, jsonDatum(text))
		}
		_, in := sampled(sample)
		var fits []string
		for _, typ := range all {
			if in.Fits(0, typ) {
				fits = append(fits, typ.String())
			}
		}
		conformance.Equal(t, strings.Join(fits, " "), want, "%s fit", values)
	}
}

// same reports whether a cell has the type and value of a JSON value. Nested values, and numbers that no cell can hold,
// are compared as text; in a column with such a number, all numbers are text.
func same(v table.Value, text string, asText bool) bool {
	switch text[0] {
	case 'n':
		return v.Type == table.Null
	case 't', 'f':
		return v.Type == table.Boolean && (v.Int != 0) == (text == "true")
	case '"':
		return v.Type == table.String && string(v.Bytes) == text[1:len(text)-1]
	case '{', '[':
		return v.Type == table.String && string(v.Bytes) == text
	}
	want, _ := new(big.Rat).SetString(text)
	switch v.Type {
	case table.Integer:
		return integral([]byte(text)) && want.Cmp(new(big.Rat).SetInt64(v.Int)) == 0
	case table.Double:
		shown, _ := new(big.Rat).SetString(string(table.AppendDouble(nil, v.Double)))
		return want.Cmp(shown) == 0 || want.Cmp(new(big.Rat).SetFloat64(v.Double)) == 0
	}
	return v.Type == table.String && string(v.Bytes) == text && (asText || naturalNumber([]byte(text)) == table.String)
}

func TestValuesAfterSampleAreExactOrRejected(t *testing.T) {
	values := strings.Fields(`null true false 0 5 -7 9007199254740993 5.0 1.5 1e3 -0 12345678901234567891 1e400
		"5" "5.0" "1.5" "true" "x" "" "12345678901234567891" {"a":1} [1] "[1]" {}`)
	rnd := rand.New(rand.NewPCG(7, 7))
	rejected, loaded := 0, 0
	for range 40_000 {
		some := values
		if rnd.IntN(2) == 0 { // few kinds, to make columns of one type common
			some = []string{values[rnd.IntN(len(values))], values[rnd.IntN(len(values))]}
		}
		list := make([]string, 1+rnd.IntN(8))
		data := make([]record.Datum, len(list))
		for i := range list {
			list[i] = some[rnd.IntN(len(some))]
			if rnd.IntN(3) == 0 {
				list[i] = values[rnd.IntN(len(values))]
			}
			data[i] = jsonDatum(list[i])
		}
		k := rnd.IntN(len(list) + 1)
		col, in := sampled(data[:k])
		for i, d := range data {
			v, why := convertOne(col, d)
			switch {
			case why != nil && i < k:
				t.Fatalf("%q: %s, in the sample of %d, is rejected by %s (%s): %v", list, list[i], k, col.Type, col.Own, why)
			case why != nil:
				rejected++
				conformance.MustTrue(t, strings.Contains(why.Error(), "c") && why.Code != "", "%q: %v", list, why)
			case !same(v, list[i], in.columns[0].long.n > 0):
				t.Fatalf("%q, a sample of %d, %s (%s): %s became %+v (%s)", list, k, col.Type, col.Own, list[i], v, v.Bytes)
			default:
				loaded++
			}
		}
	}
	conformance.True(t, rejected >= 10_000 && loaded >= 10_000, "%d rejected, %d loaded", rejected, loaded)
}

func TestKeyValuesRemainDistinct(t *testing.T) {
	values := strings.Fields(`true 7 7.0 1.5 12345678901234567891 "7" "7.0" "1.5" "true" "12345678901234567891" {"a":1}`)
	for _, to := range []table.Type{table.Integer, table.String} {
		for _, first := range values {
			_, in := sampled([]record.Datum{jsonDatum(first)})
			col := table.Column{Name: "c", Type: to, Exact: true, Own: in.Own(0, to)}
			from := map[string]string{}
			for _, text := range values {
				v, why := convertOne(col, jsonDatum(text))
				if why != nil {
					continue
				}
				key := fmt.Sprint(v.Type, v.Int, string(v.Bytes))
				if other, ok := from[key]; ok && !strings.Contains(text, "12345678901234567891") { // a string, like its text
					t.Errorf("a column of %s by a sample of %s: %s and %s are one key", to, first, other, text)
				}
				from[key] = text
			}
			if natural := Natural(new(jsonDatum(first))); (to == table.String || natural == table.Integer) && len(from) == 0 {
				t.Errorf("a column of %s by a sample of %s takes nothing", to, first)
			}
		}
	}
}

func TestColumnRejectsValuesOfOtherTypes(t *testing.T) {
	own := func(to, own table.Type) table.Column {
		return table.Column{Name: "c", Type: to, Exact: true, Inferred: true, Own: own}
	}
	kept := func(of table.Type) table.Column { return own(of, of) }
	stamp := stamp(5, record.Millis, false)
	for _, tt := range []struct {
		col  table.Column
		d    record.Datum
		want table.Value
		code string
	}{
		{kept(table.Integer), record.Datum{Kind: record.Double, Double: 5}, table.Value{}, table.CodeType},
		{kept(table.Integer), record.Datum{Kind: record.Date, Int: 5}, table.Value{}, table.CodeType},
		{kept(table.Integer), stamp, table.Value{}, table.CodeType},
		{kept(table.Integer), record.Datum{Kind: record.String, Bytes: []byte("5")}, table.Value{}, table.CodeType},
		{kept(table.Integer), text("5"), num(5), ""}, // CSV has no types
		{kept(table.Double), record.Datum{Kind: record.Integer, Int: 5}, dbl(5), ""},
		{kept(table.Double), record.Datum{Kind: record.Unsigned, Int: 5}, dbl(5), ""},
		{kept(table.Double), record.Datum{Kind: record.Unsigned, Int: -5}, table.Value{}, table.CodeRange},
		{kept(table.Double), record.Datum{Kind: record.Decimal, Bytes: []byte{5}}, table.Value{}, table.CodeType},
		{kept(table.String), record.Datum{Kind: record.Integer, Int: 5}, table.Value{}, table.CodeType},
		{kept(table.String), record.Datum{Kind: record.Binary, Bytes: []byte("5")}, table.Value{}, table.CodeType},
		{kept(table.String), stamp, str("1970-01-01T00:00:00.005Z"), ""},
		{kept(table.String), jsonDatum(`{"a":1}`), str(`{"a":1}`), ""},
		{own(table.String, table.Double), record.Datum{Kind: record.Integer, Int: 5}, str("5"), ""},
		{own(table.String, table.Double), jsonDatum(`"5"`), table.Value{}, table.CodeType},
		{kept(table.Binary), jsonDatum(`"AP8="`), table.Value{}, table.CodeType},
		{kept(table.Binary), jsonDatum(`{"base64":"AP8="}`), bin(0, 255), ""},
		{kept(table.Boolean), jsonDatum(`"true"`), table.Value{}, table.CodeType},
		{kept(table.Any), jsonDatum(`"true"`), str("true"), ""},
		{table.Column{Type: table.String}, jsonDatum("5"), str("5"), ""}, // the user gave the type
	} {
		check(t, tt.col, tt.d, tt.want, tt.code)
	}
	_, why := convertOne(kept(table.String), jsonDatum("5"))
	const want = "an integer in a column of strings; --type c=string makes text of all its values, and --type c=any, " +
		"which a primary key cannot have, leaves each its type"
	conformance.True(t, why != nil && why.Message == want && why.Column == "c" &&
		bytes.Equal([]byte(why.Value), []byte("5")), "%+v", why)
}

func TestColumnOfNullsKeepsLaterTypes(t *testing.T) {
	col, _ := sampled([]record.Datum{{}, {}})
	conformance.Equal(t, col.Type, table.Any, "nulls of JSON make a column of")
	col, _ = sampled([]record.Datum{{Kind: record.Text}})
	conformance.Equal(t, col.Type, table.String, "empty fields of CSV make a column of")
}

// TestDigitsAgreeWithMathBig parses texts of 1 to 24 bytes, mostly digits, with every byte at every position.
func TestDigitsAgreeWithMathBig(t *testing.T) {
	check := func(text []byte, negative bool) {
		n, fits, ok := parseDigits(text, negative)
		wantOK := true
		for _, c := range text {
			wantOK = wantOK && '0' <= c && c <= '9'
		}
		conformance.MustEqual(t, ok, wantOK, "%q: digits", text)
		if !ok {
			return
		}
		want, _ := new(big.Int).SetString(string(text), 10)
		signed := want
		if negative {
			signed = new(big.Int).Neg(want)
		}
		conformance.MustTrue(t, fits == signed.IsInt64() && (!fits || n == want.Uint64()),
			"%q, negative %v: %d, fits %v, want %v", text, negative, n, fits, want)
	}
	for length := 1; length <= 20; length++ {
		for at := range length {
			for b := range 256 {
				text := []byte("12345678901234567890")[:length]
				text[at] = byte(b)
				check(text, b%2 == 0)
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 23))
	for range 50_000 {
		text := make([]byte, 1+rnd.IntN(24))
		for i := range text {
			text[i] = byte('0' + rnd.IntN(10))
		}
		if rnd.IntN(4) == 0 {
			text[rnd.IntN(len(text))] = byte(rnd.IntN(256))
		}
		check(text, rnd.IntN(2) == 0)
	}
	for _, text := range []string{"9223372036854775807", "9223372036854775808", "9223372036854775809",
		"000000000000000000000001", "999999999999999999", "1000000000000000000"} {
		check([]byte(text), false)
		check([]byte(text), true)
	}
}

// TestDecimalsAgreeWithStrconv parses texts of 1 to 17 digits, points and signs, with every byte at every position.
func TestDecimalsAgreeWithStrconv(t *testing.T) {
	taken := 0
	check := func(text string) {
		f, canonical, ok := plainDecimal([]byte(text))
		n, whole := usualWhole([]byte(text))
		i, err := strconv.ParseInt(text, 10, 64)
		wantWhole := err == nil && strconv.FormatInt(i, 10) == text && -1e15 < i && i < 1e15
		conformance.MustTrue(t, whole == wantWhole && (!whole || n == i), "%q: %d, whole %v", text, n, whole)
		if !ok {
			return
		}
		taken++
		want, err := strconv.ParseFloat(text, 64)
		conformance.MustTrue(t, err == nil && f == want && strings.Trim(text, "-.0123456789") == "" &&
			table.KeepsDouble([]byte(text), f), "%q: %v, want %v, %v", text, f, want, err)
		printed := string(table.AppendDouble(nil, want))
		conformance.MustTrue(t, canonical == (printed == text), "%q: canonical %v, prints %s", text, canonical, printed)
	}
	for _, text := range []string{"-", "1.", "-1.", ".1", "-1.50", "0.5", "00", "1..2", "999999999999999",
		"9999999999999999", "9.99999999999999", "123456789012345.6", "9007199254740993"} {
		check(text)
	}
	for length := 1; length <= 17; length++ {
		for at := range length {
			for b := range 256 {
				text := []byte("12345678901234567")[:length]
				text[at] = byte(b)
				check(string(text))
				text[length/2] = '.'
				check(string(text))
				text[0] = '-'
				check(string(text))
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 23))
	for range 60_000 {
		text := make([]byte, 1+rnd.IntN(17))
		for i := range text {
			text[i] = "01234567890123456789012345678901.-"[rnd.IntN(34)]
		}
		check(string(text))
	}
	conformance.True(t, taken >= 15_000, "only %d of the texts are usual decimals", taken)
}

// TestAddFieldEqualsAdd adds the same values with both methods. The columns and counts must be the same.
func TestAddFieldEqualsAdd(t *testing.T) {
	kinds := [][]string{
		{"1", "0", "-7", "12345678", "999999999999999", "-100000000000000"},
		{"1.5", "-20.25", "123456.789", "0.5", "10", "7.25"},
		{"true", "false"},
		{"pear", "2024-01-02", "x", "", "12 apples", "ü"},
		{"1000000000000000", "9223372036854775807", "-9223372036854775808"},
		{"007", "+5", "10.50", "1e3", "-0", "9223372036854775808", "NULL"},
	}
	rnd := rand.New(rand.NewPCG(7, 9))
	seen := map[string]int{}
	for range 1_000 {
		o := Options{Nulls: [][]string{nil, {"NULL"}}[rnd.IntN(2)], Trim: rnd.IntN(4) == 0}
		one, other := NewInference(1, o), NewInference(1, o)
		var values []float64
		var missed bool
		for range 1 + rnd.IntN(3) {
			kind := kinds[rnd.IntN(len(kinds))]
			for range []int{1, 70, 200}[rnd.IntN(3)] {
				rec := &record.Record{Fields: []record.Datum{{Kind: record.Text, Bytes: []byte(kind[rnd.IntN(len(kind))]),
					Quoted: rnd.IntN(9) == 0}}}
				one.Add(rec)
				_, why := other.Texts(rec)
				conformance.MustTrue(t, why == nil, "%v", why)
				d, n, isNumber := other.AddField(0, rec)
				if plain := one.Plain(&rec.Fields[0]); (d == nil) != plain.None() {
					t.Fatalf("%q: %v and %v", rec.Fields[0].Bytes, d, plain)
				} else if d == nil {
					continue
				}
				want, ok := Number(d)
				if i, err := strconv.ParseInt(string(d.Bytes), 10, 64); err == nil && !ok {
					want, ok = float64(i), isNumber // the nearest double
				}
				conformance.MustTrue(t, !isNumber || ok && n == want, "%q: the number %v, want %v, %v", d.Bytes, n, want, ok)
				missed = missed || !isNumber && ok
				values = append(values, n)
			}
		}
		say := func(in *Inference) string {
			few, nearly := in.Minority(0, false)
			text := fmt.Sprintf("%v, seen %v, minority %+v %v, fits", in.Type(0), in.Seen(0), few, nearly)
			for _, of := range []table.Type{table.Integer, table.Double, table.Boolean, table.String} {
				text += fmt.Sprintf(" %v", in.Fits(0, of))
			}
			return text
		}
		conformance.MustEqual(t, say(one), say(other), "%v", values)
		is := one.Type(0)
		conformance.MustTrue(t, !missed || is != table.Integer && is != table.Double, "a number for %v was left out", is)
		seen[is.String()]++
		seen[fmt.Sprint("usual ", other.columns[0].usual)]++
	}
	for _, want := range []string{"integer", "double", "boolean", "string", "usual 0", "usual 1", "usual 2", "usual 3"} {
		conformance.True(t, seen[want] != 0, "no column was %s: %v", want, seen)
	}
}

// TestFastPathEqualsExactConversion converts texts with and without the fast path.
func TestFastPathEqualsExactConversion(t *testing.T) {
	texts := []string{"", "0", "-0", "7", "-7", "007", "+5", "999999999999999", "1000000000000000", "9223372036854775807",
		"9223372036854775808", "1.5", "10.50", "-20.25", "0.5", "1.", ".5",
		"1e5", "123456789.123456", "true", "pear", "ü", "\xff", "12a", "NULL", " 7 "}
	names := []string{"i", "I", "d", "D", "Z", "s", "b"}
	columns := []table.Column{{Source: "i", Type: table.Integer, Exact: true}, {Source: "I", Type: table.Integer},
		{Source: "d", Type: table.Double, Exact: true},
		{Source: "D", Type: table.Double}, {Source: "Z", Type: table.Double, Exact: true, Zeros: true},
		{Source: "s", Type: table.String}, {Source: "b", Type: table.Boolean, Exact: true}}
	for i := range columns {
		columns[i].Name = columns[i].Source
	}
	for _, o := range []Options{{}, {Nulls: []string{"NULL", "7"}}, {EmptyIsText: true}, {Trim: true},
		{QuotedNulls: []string{"pear"}}, {QuotedNulls: []string{""}}} {
		short := conformance.Try(New(names, columns, o)).Must(t)
		exact, _ := New(names, columns, o)
		clear(exact.usual)
		for at := range names {
			for _, text := range texts {
				for _, quoted := range []bool{false, true} {
					rec := &record.Record{Fields: make([]record.Datum, len(names))}
					for k := range names {
						rec.Fields[k] = record.Datum{Kind: record.Text}
					}
					rec.Fields[at].Bytes, rec.Fields[at].Quoted = []byte(text), quoted
					got, why := short.Convert(rec)
					want, wantWhy := exact.Convert(rec)
					conformance.MustEqual(t, fmt.Sprintf("%+v %v", got, why), fmt.Sprintf("%+v %v", want, wantWhy), "%+v %q", o, text)
				}
			}
		}
	}
}

// seen returns an inference for one column, to which the values were added.
func seen(values ...record.Datum) *Inference {
	in := NewInference(1, Options{})
	for i := range values {
		in.Add(&record.Record{Fields: values[i : i+1]})
	}
	return in
}

// csvTexts returns the texts as untyped fields.
func csvTexts(texts ...string) (all []record.Datum) {
	for _, t := range texts {
		all = append(all, record.Datum{Kind: record.Text, Bytes: []byte(t)})
	}
	return all
}

func TestTextsTakeTypeOfTypedValuesIfTheySurvive(t *testing.T) {
	integer, double := record.Datum{Kind: record.Integer, Int: 6}, record.Datum{Kind: record.Double, Double: 2.5}
	boolean, str := record.Datum{Kind: record.Boolean, Int: 1}, record.Datum{Kind: record.String, Bytes: []byte("1000")}
	many := func(n int, d record.Datum) []record.Datum { return slices.Repeat([]record.Datum{d}, n) }
	for name, tt := range map[string]struct {
		typed     []record.Datum
		texts     []string
		want, key table.Type
		rejected  int // number of values that a key column rejects
	}{
		"integers":         {many(1, integer), []string{"5", "-7"}, table.Integer, table.Integer, 0},
		"both numbers":     {many(1, integer), []string{"5", "1.50"}, table.Double, table.String, 0},
		"doubles, zeros":   {many(1, double), []string{"10.50", "7"}, table.Double, table.String, 0},
		"booleans":         {many(1, boolean), []string{"true"}, table.Boolean, table.String, 0},
		"strings":          {many(1, str), []string{"5", "x"}, table.String, table.String, 0},
		"few odd texts":    {many(9, integer), []string{"5", "x"}, table.Any, table.Integer, 1},
		"few typed":        {many(2, integer), []string{"x", "y", "5", "z", "007"}, table.Any, table.String, 2},
		"one string":       {append(many(1000, integer), str), nil, table.Any, table.Integer, 1},
		"one integer":      {append(many(1000, str), integer), nil, table.Any, table.String, 1},
		"large, fractions": {[]record.Datum{{Kind: record.Integer, Int: 1<<60 + 1}, double}, nil, table.Any, table.String, 0},
		"a rare fraction":  {many(20, integer), []string{"2.5"}, table.Double, table.Integer, 1},
		"words, booleans":  {many(1, boolean), []string{"5"}, table.Any, table.Integer, 1},
	} {
		// The order of sources must not matter, nor how the values are divided among them.
		texts := csvTexts(tt.texts...)
		whole := seen(append(slices.Clone(tt.typed), texts...)...)
		ab, ba := seen(), seen()
		ab.Merge(seen(tt.typed...))
		ab.Merge(seen(texts...))
		ba.Merge(seen(texts...))
		ba.Merge(seen(tt.typed...))
		for _, in := range []*Inference{whole, ab, ba} {
			key, few, mixed := in.KeyType(0)
			got := in.Type(0)
			conformance.True(t, got == tt.want && key == tt.key && mixed == (tt.rejected > 0) && few.Others == tt.rejected,
				"%s", name)
			_, nearly := in.Minority(0, false)
			conformance.True(t, !nearly || tt.want == table.Any, "%s: a minority", name)
		}
	}
}

func TestMergedInferencesCountAllMismatches(t *testing.T) {
	words, numbers := make([]string, 100), make([]string, 100_000)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	for i := range words {
		words[i] = "w" + strconv.Itoa(i)
	}
	for _, order := range [][2][]string{{words, numbers}, {numbers, words}} {
		in := seen()
		in.Merge(seen(csvTexts(order[0]...)...))
		in.Merge(seen(csvTexts(order[1]...)...))
		few, nearly := in.Minority(0, false)
		conformance.True(t, in.Type(0) == table.String && nearly && few.Type == table.Integer && few.Most == 100_000 &&
			few.Others == 100, "%s, %+v %v", in.Type(0), few, nearly)
	}
}

func TestNumbersKeptAsTextAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		texts   []string
		example string
	}{
		"zeros": {[]string{"23.0", "68.60", "7"}, "68.60"}, "whole with a point": {[]string{"1.0", "2.0", ""}, "1.0"},
		"doubles": {[]string{"1.0", "2.5"}, ""}, "integers": {[]string{"1", "2"}, ""},
		"leading zeros": {[]string{"007", "1.50"}, ""}, "words": {[]string{"1.50", "x"}, ""},
		"exponents": {[]string{"8.76712776820554e-05", "1.5"}, ""},
	} {
		texts, merged := csvTexts(tt.texts...), seen()
		for i := range texts {
			merged.Merge(seen(texts[i]))
		}
		for _, in := range []*Inference{seen(texts...), merged} {
			example, ok := in.Numbers(0)
			conformance.True(t, example == tt.example && ok == (tt.example != ""), "%s: %q %v", name, example, ok)
		}
	}
}

func TestPlainNumbersHaveNoSignOrLeadingZeros(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "0.50": true, "-0.5": true, "10": true, "10.50": true, "-7": true,
		"00": false, "07": false, "01.5": false, "-01.5": false, "007": false, "+7": false, "7.": false, ".5": false,
		"1e5": false, "": false, "-": false, "1.5x": false,
	} {
		conformance.Equal(t, PlainNumber([]byte(text)), want, "%q", text)
	}
}
