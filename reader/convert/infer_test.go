package convert

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// TestFieldsAreTakenAsRecordsAre gives an inference values one way and another: what it says of a column is the same, and so are its numbers.
func TestFieldsAreTakenAsRecordsAre(t *testing.T) {
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
				rec := &record.Record{Fields: []record.Datum{{Kind: record.Text, Bytes: []byte(kind[rnd.IntN(len(kind))]), Quoted: rnd.IntN(9) == 0}}}
				one.Add(rec)
				if _, why := other.Texts(rec); why != nil {
					t.Fatal(why)
				}
				d, n, isNumber := other.AddField(0, rec)
				if plain := one.Plain(&rec.Fields[0]); (d == nil) != plain.None() {
					t.Fatalf("%q: %v and %v", rec.Fields[0].Bytes, d, plain)
				} else if d == nil {
					continue
				}
				want, ok := Number(d)
				if i, err := strconv.ParseInt(string(d.Bytes), 10, 64); err == nil && !ok {
					want, ok = float64(i), isNumber // the nearest
				}
				if isNumber && (!ok || n != want) {
					t.Fatalf("%q: the number %v, want %v, %v", d.Bytes, n, want, ok)
				}
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
		if missed && (is == table.Integer || is == table.Double) {
			t.Fatalf("a number of a column of type %v was left out", is)
		}
		seen[is.String()]++
		seen[fmt.Sprint("usual ", other.columns[0].usual)]++
	}
	for _, want := range []string{"integer", "double", "boolean", "string", "usual 0", "usual 1", "usual 2", "usual 3"} {
		if seen[want] == 0 {
			t.Errorf("no column was %s: %v", want, seen)
		}
	}
}

// TestUsualValuesAreThoseOfTheExactWay converts texts with and without the short way.
func TestUsualValuesAreThoseOfTheExactWay(t *testing.T) {
	texts := []string{"", "0", "-0", "7", "-7", "007", "+5", "999999999999999", "1000000000000000", "9223372036854775807", "9223372036854775808", "1.5", "10.50", "-20.25", "0.5", "1.", ".5",
		"1e5", "123456789.123456", "true", "pear", "ü", "\xff", "12a", "NULL", " 7 "}
	names := []string{"i", "I", "d", "D", "Z", "s", "b"}
	columns := []table.Column{{Source: "i", Type: table.Integer, Exact: true}, {Source: "I", Type: table.Integer}, {Source: "d", Type: table.Double, Exact: true},
		{Source: "D", Type: table.Double}, {Source: "Z", Type: table.Double, Exact: true, Zeros: true}, {Source: "s", Type: table.String}, {Source: "b", Type: table.Boolean, Exact: true}}
	for i := range columns {
		columns[i].Name = columns[i].Source
	}
	for _, o := range []Options{{}, {Nulls: []string{"NULL", "7"}}, {EmptyIsText: true}, {Trim: true}, {QuotedNulls: []string{"pear"}}, {QuotedNull: true}} {
		short, err := New(names, columns, o)
		must(t, err)
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
					if fmt.Sprint(why) != fmt.Sprint(wantWhy) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
						t.Fatalf("%+v, %s %q: %+v %v, want %+v %v", o, names[at], text, got, why, want, wantWhy)
					}
				}
			}
		}
	}
}

// seen is an inference over one column of values.
func seen(values ...record.Datum) *Inference {
	in := NewInference(1, Options{})
	for i := range values {
		in.Add(&record.Record{Fields: values[i : i+1]})
	}
	return in
}

// csvTexts are fields of CSV.
func csvTexts(texts ...string) (all []record.Datum) {
	for _, t := range texts {
		all = append(all, record.Datum{Kind: record.Text, Bytes: []byte(t)})
	}
	return all
}

func TestTextsJoinTheTypeOfValuesThatHaveOneIfTheySurviveAsIt(t *testing.T) {
	integer, double := record.Datum{Kind: record.Integer, Int: 6}, record.Datum{Kind: record.Double, Double: 2.5}
	boolean, str := record.Datum{Kind: record.Boolean, Int: 1}, record.Datum{Kind: record.String, Bytes: []byte("1000")}
	many := func(n int, d record.Datum) (all []record.Datum) {
		for range n {
			all = append(all, d)
		}
		return all
	}
	for name, tt := range map[string]struct {
		typed     []record.Datum
		texts     []string
		want, key table.Type
		rejected  int // of a key
	}{
		"integers":              {many(1, integer), []string{"5", "-7"}, table.Integer, table.Integer, 0},
		"integers and doubles":  {many(1, integer), []string{"5", "1.50"}, table.Double, table.String, 0},
		"doubles and zeros":     {many(1, double), []string{"10.50", "7"}, table.Double, table.String, 0},
		"booleans":              {many(1, boolean), []string{"true"}, table.Boolean, table.String, 0},
		"strings":               {many(1, str), []string{"5", "x"}, table.String, table.String, 0},
		"few odd texts":         {many(9, integer), []string{"5", "x"}, table.Any, table.Integer, 1},
		"few typed":             {many(2, integer), []string{"x", "y", "5", "z", "007"}, table.Any, table.String, 2},
		"one string":            {append(many(1000, integer), str), nil, table.Any, table.Integer, 1},
		"one integer":           {append(many(1000, str), integer), nil, table.Any, table.String, 1},
		"large and fractions":   {[]record.Datum{{Kind: record.Integer, Int: 1<<60 + 1}, double}, nil, table.Any, table.String, 0},
		"a rare fraction":       {many(20, integer), []string{"2.5"}, table.Double, table.Integer, 1},
		"words beside booleans": {many(1, boolean), []string{"5"}, table.Any, table.Integer, 1},
	} {
		// The order of the sources and how the values are divided do not matter.
		texts := csvTexts(tt.texts...)
		whole := seen(append(slices.Clone(tt.typed), texts...)...)
		ab, ba := seen(), seen()
		ab.Merge(seen(tt.typed...))
		ab.Merge(seen(texts...))
		ba.Merge(seen(texts...))
		ba.Merge(seen(tt.typed...))
		for _, in := range []*Inference{whole, ab, ba} {
			key, few, mixed := in.KeyType(0)
			if got := in.Type(0); got != tt.want || key != tt.key || mixed != (tt.rejected > 0) || few.Others != tt.rejected {
				t.Errorf("%s: %s, as a key %s %v of %+v", name, got, key, mixed, few)
			}
			if _, nearly := in.Minority(0, false); nearly && tt.want != table.Any {
				t.Errorf("%s: a minority", name)
			}
		}
	}
}

func TestMergedInferencesCountWhatEachHasMissed(t *testing.T) {
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
		if in.Type(0) != table.String || !nearly || few.Type != table.Integer || few.Most != 100_000 || few.Others != 100 {
			t.Errorf("%s, %+v %v", in.Type(0), few, nearly)
		}
	}
}

func TestNumbersThatAreKeptAsTextsAreKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		texts   []string
		example string
	}{
		"zeros": {[]string{"23.0", "68.60", "7"}, "68.60"}, "whole with a point": {[]string{"1.0", "2.0", ""}, "1.0"}, "doubles": {[]string{"1.0", "2.5"}, ""},
		"integers": {[]string{"1", "2"}, ""}, "leading zeros": {[]string{"007", "1.50"}, ""}, "words": {[]string{"1.50", "x"}, ""},
		"exponents": {[]string{"8.76712776820554e-05", "1.5"}, ""},
	} {
		texts, merged := csvTexts(tt.texts...), seen()
		for i := range texts {
			merged.Merge(seen(texts[i]))
		}
		for _, in := range []*Inference{seen(texts...), merged} {
			if example, ok := in.Numbers(0); example != tt.example || ok != (tt.example != "") {
				t.Errorf("%s: %q %v", name, example, ok)
			}
		}
	}
}

func TestANumberIsPlainWithoutSignsAndZerosInFront(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "0.50": true, "-0.5": true, "10": true, "10.50": true, "-7": true,
		"00": false, "07": false, "01.5": false, "-01.5": false, "007": false, "+7": false, "7.": false, ".5": false, "1e5": false, "": false, "-": false, "1.5x": false,
	} {
		conformance.Equal(t, PlainNumber([]byte(text)), want, "%q", text)
	}
}
