package convert

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"tsimport/internal/table"
	"tsimport/reader/record"
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
			few, nearly := in.Minority(0)
			text := fmt.Sprintf("%v, seen %v, minority %+v %v, fits", in.Type(0), in.Seen(0), few, nearly)
			for _, of := range []table.Type{table.Integer, table.Double, table.Boolean, table.String} {
				text += fmt.Sprintf(" %v", in.Fits(0, of))
			}
			return text
		}
		if a, b := say(one), say(other); a != b {
			t.Fatalf("%v:\n%s\n%s", values, a, b)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
