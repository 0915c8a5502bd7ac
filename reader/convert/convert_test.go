package convert

import (
	"math"
	"strings"
	"testing"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

func convertOne(col table.Column, d record.Datum) (table.Value, *table.Reason) {
	col.Source = "c"
	c, err := New([]string{"c"}, []table.Column{col}, Options{})
	if err != nil {
		panic(err)
	}
	values, why := c.Convert(&record.Record{Fields: []record.Datum{d}})
	if why != nil {
		return table.Value{}, why
	}
	return values[0], nil
}

func text(s string) record.Datum {
	return record.Datum{Kind: record.Text, Bytes: []byte(s), Quoted: true}
}

func str(s string) table.Value  { return table.Value{Type: table.String, Bytes: []byte(s)} }
func num(v int64) table.Value   { return table.Value{Type: table.Integer, Int: v} }
func dbl(v float64) table.Value { return table.Value{Type: table.Double, Double: v} }
func bin(b ...byte) table.Value { return table.Value{Type: table.Binary, Bytes: b} }

// stamp returns a timestamp as a typed file would contain it.
func stamp(v int64, u record.Unit, local bool) record.Datum {
	return record.Datum{Kind: record.Timestamp, Int: v, Unit: u, Local: local}
}

func check(t *testing.T, col table.Column, d record.Datum, want table.Value, code string) {
	t.Helper()
	got, why := convertOne(col, d)
	gotCode := ""
	if why != nil {
		gotCode = why.Code
	}
	conformance.True(t, gotCode == code && cmp.Equal(got, want),
		"%s (exact %v) of %q: %+v %q, want %+v %q", col.Type, col.Exact, show(&d), got, gotCode, want, code)
}

func TestTextFitsOrIsRefusedUnchanged(t *testing.T) {
	integer := table.Column{Type: table.Integer}
	double := table.Column{Type: table.Double}
	boolean := table.Column{Type: table.Boolean}
	exact := func(c table.Column) table.Column { c.Exact = true; return c }
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
		{double, "0.1000000000000000055", table.Value{}, table.CodeRange},
		{double, "12345678901234567891", table.Value{}, table.CodeRange},
		{double, "0.30000000000000004", dbl(math.Nextafter(0.3, 1)), ""},
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

		{table.Column{Type: table.String}, "", str(""), ""},
		{table.Column{Type: table.String}, "a\x00é", str("a\x00é"), ""},
		{table.Column{Type: table.String}, "a\xff", table.Value{}, table.CodeUTF8},
		{table.Column{Type: table.String}, "\xed\xa0\x80", table.Value{}, table.CodeUTF8},

		{table.Column{Type: table.Binary}, "AP8=", bin(0, 0xff), ""},
		{table.Column{Type: table.Binary}, "AP9=", table.Value{}, table.CodeType}, // its last bits would be lost
		{table.Column{Type: table.Binary}, "AP8", table.Value{}, table.CodeType},
		{table.Column{Type: table.Binary}, "AP\n8=", table.Value{}, table.CodeType},
		{table.Column{Type: table.Binary, Hex: true}, "00fF", bin(0, 0xff), ""},
		{table.Column{Type: table.Binary, Hex: true}, `\x00ff`, bin(0, 0xff), ""},
		{table.Column{Type: table.Binary, Hex: true}, "0x", bin(), ""},
		{table.Column{Type: table.Binary, Hex: true}, "00f", table.Value{}, table.CodeType},
		{table.Column{Type: table.Any}, "007", str("007"), ""},
	} {
		check(t, tt.col, text(tt.text), tt.want, tt.code)
	}
}

func TestTypedValuesFitOrAreRefused(t *testing.T) {
	decimal := func(scale int32, b ...byte) record.Datum {
		return record.Datum{Kind: record.Decimal, Scale: scale, Bytes: b}
	}
	number := func(s string) record.Datum { return record.Datum{Kind: record.Number, Bytes: []byte(s)} }
	integer := func(v int64) record.Datum { return record.Datum{Kind: record.Integer, Int: v} }
	unsigned := func(v uint64) record.Datum { return record.Datum{Kind: record.Unsigned, Int: int64(v)} }
	double := func(v float64) record.Datum { return record.Datum{Kind: record.Double, Double: v} }
	for _, tt := range []struct {
		to   table.Type
		d    record.Datum
		want table.Value
		code string
	}{
		{table.Integer, number("9007199254740993"), num(9007199254740993), ""},
		{table.Integer, number("1.5"), table.Value{}, table.CodeType},
		{table.Any, number("9007199254740993"), num(9007199254740993), ""},
		{table.Any, number("1.50"), dbl(1.5), ""},
		{table.Any, number("1e2"), dbl(100), ""},
		{table.Any, number("99999999999999999999"), str("99999999999999999999"), ""},
		{table.Any, number("12345678901234567891"), str("12345678901234567891"), ""},
		{table.Any, number("-9223372036854775809"), str("-9223372036854775809"), ""},
		{table.Any, number("9223372036854775808"), str("9223372036854775808"), ""}, // a double, but its neighbours are not
		{table.Any, number("1e400"), str("1e400"), ""},
		{table.Any, number("1e-400"), str("1e-400"), ""},
		{table.Any, number("0.1000000000000000055"), str("0.1000000000000000055"), ""},
		{table.Any, number("12345678901234567891.0"), str("12345678901234567891.0"), ""},
		{table.Any, number("1234567890123456789e0"), str("1234567890123456789e0"), ""},
		{table.Any, number("0.10000000000000001"), dbl(0.1), ""}, // 17 digits, as printed by %.17g
		{table.Any, number("4.9406564584124654e-324"), dbl(5e-324), ""},
		{table.Any, number("5.1e-324"), str("5.1e-324"), ""},
		{table.Any, number("-0"), dbl(math.Copysign(0, -1)), ""},
		{table.Any, number("-0.0"), dbl(math.Copysign(0, -1)), ""},
		{table.Any, number("1.0"), dbl(1), ""},
		{table.Any, number("1"), num(1), ""},
		{table.Double, number("12345678901234567891"), table.Value{}, table.CodeRange},
		{table.Double, number("12345678901234567000"), table.Value{}, table.CodeRange},
		{table.Double, number("9223372036854775808"), dbl(1 << 63), ""},
		{table.Double, number("0.1000000000000000055"), table.Value{}, table.CodeRange},
		{table.Double, number("1e400"), table.Value{}, table.CodeRange},
		{table.Double, number("-0"), dbl(math.Copysign(0, -1)), ""},
		{table.Integer, number("12345678901234567891"), table.Value{}, table.CodeRange},
		{table.Any, unsigned(math.MaxUint64), str("18446744073709551615"), ""},
		{table.String, number("1.50"), str("1.50"), ""},
		{table.Double, number("10.50"), dbl(10.5), ""},
		{table.Double, number("5"), dbl(5), ""},
		{table.Double, number("9007199254740993"), table.Value{}, table.CodeRange},

		{table.Integer, unsigned(math.MaxInt64), num(math.MaxInt64), ""},
		{table.Integer, unsigned(math.MaxInt64 + 1), table.Value{}, table.CodeRange},
		{table.String, unsigned(math.MaxUint64), str("18446744073709551615"), ""},
		{table.Integer, double(5), num(5), ""},
		{table.Integer, double(5.5), table.Value{}, table.CodeType},
		{table.Double, double(math.NaN()), table.Value{}, table.CodeRange},
		{table.Double, double(math.Inf(-1)), table.Value{}, table.CodeRange},
		{table.String, double(0.1), str("0.1"), ""},
		{table.Double, integer(1 << 53), dbl(1 << 53), ""},
		{table.Double, integer(1<<53 + 1), table.Value{}, table.CodeRange},
		{table.Double, integer(math.MaxInt64), table.Value{}, table.CodeRange},
		{table.Boolean, record.Datum{Kind: record.Boolean, Int: 1}, table.Value{Type: table.Boolean, Int: 1}, ""},
		{table.String, record.Datum{Kind: record.Boolean, Int: 1}, str("true"), ""},
		{table.Integer, record.Datum{Kind: record.Boolean, Int: 1}, table.Value{}, table.CodeType},
		{table.Binary, record.Datum{Kind: record.Binary, Bytes: []byte{1}}, bin(1), ""},
		{table.String, record.Datum{Kind: record.Binary, Bytes: []byte{0xff}}, table.Value{}, table.CodeUTF8},
		{table.String, record.Datum{Kind: record.String, Bytes: []byte{0xff}}, table.Value{}, table.CodeUTF8},
		{table.String, record.Datum{Kind: record.JSON, Bytes: []byte("[1]")}, str("[1]"), ""},

		{table.String, decimal(2, 0x04, 0xd2), str("12.34"), ""},
		{table.String, decimal(2, 0xff), str("-0.01"), ""},
		{table.String, decimal(0, 0x80), str("-128"), ""},
		{table.String, decimal(-2, 0x05), str("500"), ""},
		{table.String, decimal(5, 0x01), str("0.00001"), ""},
		{table.Integer, decimal(2, 0x04, 0xd2), num(1234), ""},
		{table.Double, decimal(2, 0x04, 0xd2), dbl(12.34), ""},
		{table.Double, decimal(2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99), table.Value{}, table.CodeRange},
		{table.Integer, decimal(0, 1, 0, 0, 0, 0, 0, 0, 0, 0), table.Value{}, table.CodeRange},

		{table.String, record.Datum{Kind: record.Date, Int: -1}, str("1969-12-31"), ""},
		{table.Integer, record.Datum{Kind: record.Date, Int: 19723}, num(19723), ""},
		{table.String, record.Datum{Kind: record.TimeOfDay, Int: 3661001, Unit: record.Millis}, str("01:01:01.001"), ""},
		{table.String, stamp(-1, record.Millis, false), str("1969-12-31T23:59:59.999Z"), ""},
		{table.String, stamp(1704067200000001, record.Micros, true), str("2024-01-01T00:00:00.000001"), ""},
		{table.Integer, stamp(1704067200000001, record.Micros, true), num(1704067200000001), ""},
		{table.Any, stamp(0, record.Nanos, false), str("1970-01-01T00:00:00.000000000Z"), ""},
		{table.Double, stamp(0, record.Nanos, false), table.Value{}, table.CodeType},
	} {
		check(t, table.Column{Type: tt.to}, tt.d, tt.want, tt.code)
	}
}

func TestTimesBecomeIntegers(t *testing.T) {
	for _, tt := range []struct {
		spec string
		d    record.Datum
		want int64
		code string
	}{
		{"", text("2024-01-01T00:00:00Z"), 1704067200000, ""},
		{"", text("2024-01-01T08:00:00.5+08:00"), 1704067200500, ""},
		{"", text("2024-01-01"), 0, table.CodeType},
		{"2006-01-02 15:04:05,Asia/Shanghai", text("2024-01-01 08:00:00"), 1704067200000, ""},
		{"%Y-%m-%d %H:%M:%S,Asia/Shanghai,s", text("2024-01-01 08:00:00"), 1704067200, ""},
		{"%d/%m/%Y,us", text("01/01/2024"), 1704067200000000, ""},
		{"%d/%m/%Y,us", text("2024-01-01"), 0, table.CodeType},
		{"datetime,UTC,s", text("2024-01-01 00:00:00.25"), 0, table.CodeRange},
		{"date,Asia/Shanghai", record.Datum{Kind: record.Date, Int: 19723}, 1704038400000, ""},
		{",Asia/Shanghai", stamp(1704067200, record.Seconds, true), 1704038400000, ""},
		{"", stamp(-1, record.Nanos, false), 0, table.CodeRange},
		{",UTC,ns", stamp(-1, record.Nanos, false), -1, ""},
		{"", record.Datum{Kind: record.Integer, Int: 5}, 0, table.CodeType},
		{"datetime,America/New_York,s", text("2024-03-10 02:30:00"), 0, table.CodeRange}, // clocks went from 02:00 to 03:00
		{"datetime,America/New_York,s", text("2024-03-10 03:30:00"), 1710055800, ""},
		{"datetime,America/New_York,s", text("2024-11-03 01:30:00"), 1730611800, ""}, // the first of two such times
		{"datetime,Europe/Berlin,s", text("2024-10-27 02:30:00"), 1729989000, ""},    // the first of two such times
		{"%Y-%m-%d %H:%M:%S%z,America/New_York,s", text("2024-11-03 01:30:00-0500"), 1730615400, ""},
		{"2006-01-02 15:04:05 MST,America/New_York,s", text("2024-11-03 01:30:00 EST"), 1730615400, ""},
		{",America/New_York,s", text("2024-03-10T02:30:00Z"), 1710037800, ""},
		{",America/New_York", stamp(1710037800, record.Seconds, true), 0, table.CodeRange},
		{",America/New_York,s", stamp(1710037800, record.Seconds, false), 1710037800, ""},
		{",Pacific/Apia", record.Datum{Kind: record.Date, Int: 15338}, 0, table.CodeRange}, // 2011-12-30 was skipped there
		{"date,Pacific/Apia,s", text("2011-12-31"), 1325239200, ""},
	} {
		spec := conformance.Try(ParseTime(tt.spec)).Must(t)
		want := table.Value{}
		if tt.code == "" {
			want = num(tt.want)
		}
		check(t, table.Column{Type: table.Integer, Time: spec}, tt.d, want, tt.code)
	}
	for _, bad := range []string{"%Q", "nothing", "date,Mars/Olympus", "%"} {
		conformance.Refused(t, conformance.ErrorOf(ParseTime(bad)), "", "%q was accepted", bad)
	}
}

func TestNullsAndRaggedRecordsAreConfigurable(t *testing.T) {
	columns := []table.Column{{Source: "a", Name: "x", Type: table.String}, {Source: "b", Name: "y", Type: table.String}}
	plain := func(s string) record.Datum { return record.Datum{Kind: record.Text, Bytes: []byte(s)} }
	rec := func(f ...record.Datum) *record.Record { return &record.Record{Fields: f} }
	const null = "∅"
	for name, tt := range map[string]struct {
		o    Options
		rec  *record.Record
		want string
	}{
		"defaults":       {Options{}, rec(plain(""), text("")), null + "|"},
		"unquoted nulls": {Options{Nulls: []string{"NULL", `\N`}}, rec(plain("NULL"), text("NULL")), null + "|NULL"},
		"empty is text":  {Options{EmptyIsText: true}, rec(plain(""), text("")), "|"},
		"quoted nulls": {Options{Nulls: []string{"NULL"}, QuotedNulls: []string{`\N`}, Trim: true},
			rec(text(`\N`), plain(`\N`)), null + `|\N`},
		"other quoted texts": {Options{Nulls: []string{"NULL"}, QuotedNulls: []string{`\N`}, Trim: true},
			rec(text("NULL"), text(` \N`)), `NULL| \N`},
		"empty quoted null":   {Options{QuotedNulls: []string{""}}, rec(plain("v"), text("")), "v|" + null},
		"not trimmed":         {Options{}, rec(plain(" v\t"), text(" q ")), " v\t| q "},
		"trimmed":             {Options{Trim: true}, rec(plain(" v\t"), text(" q ")), "v| q "},
		"trimmed to nothing":  {Options{Trim: true}, rec(plain("  "), plain("w")), null + "|w"},
		"too few":             {Options{}, rec(plain("v")), table.CodeRagged},
		"too many":            {Options{}, rec(plain("v"), plain("w"), plain("z")), table.CodeRagged},
		"too many, one empty": {Options{}, rec(plain("v"), plain("w"), plain("")), table.CodeRagged + ", --ragged truncate"},
		"too many, quoted":    {Options{}, rec(plain("v"), plain("w"), text("")), table.CodeRagged},
		"two too many":        {Options{}, rec(plain("v"), plain("w"), plain(""), plain("")), table.CodeRagged},
		"padded":              {Options{Ragged: PadRagged}, rec(plain("v")), "v|" + null},
		"truncated, too few":  {Options{Ragged: TruncateRagged}, rec(plain("v")), table.CodeRagged},
		"padded, too many":    {Options{Ragged: PadRagged}, rec(plain("v"), plain("w"), plain("z")), table.CodeRagged},
		"truncated":           {Options{Ragged: TruncateRagged}, rec(plain("v"), plain("w"), plain("z")), "v|w"},
		"absent by the file":  {Options{}, rec(record.Datum{}, plain("w")), null + "|w"},
		"bad":                 {Options{}, &record.Record{Bad: &table.Reason{Code: "Bad"}}, "Bad"},
	} {
		values, why := conformance.Try(New([]string{"a", "b"}, columns, tt.o)).Must(t).Convert(tt.rec)
		got := ""
		if why != nil {
			got = why.Code
			if flag := " --ragged truncate"; strings.Contains(why.Message, flag) {
				got += "," + flag
			}
		} else {
			for i, v := range values {
				if i > 0 {
					got += "|"
				}
				if v.Type == table.Null {
					got += null
				}
				got += string(v.Bytes)
			}
		}
		conformance.Equal(t, got, tt.want, "%s", name)
	}
	conformance.Refused(t, conformance.ErrorOf(New([]string{"a"}, columns, Options{})), "", "a missing column")
}

func TestTextIsDecodedStrictly(t *testing.T) {
	upper := func(dst, src []byte) ([]byte, int) {
		for i, b := range src {
			if b == '!' {
				return dst, i
			}
			dst = append(dst, b-32)
		}
		return dst, -1
	}
	c, err := New([]string{"a"}, []table.Column{{Source: "a", Name: "x", Type: table.String}}, Options{Decode: upper})
	conformance.Must(t, err)
	values, why := c.Convert(&record.Record{Fields: []record.Datum{text("abc")}})
	conformance.True(t, why == nil && string(values[0].Bytes) == "ABC", "%v, %v", values, why)
	_, why = c.Convert(&record.Record{Fields: []record.Datum{text("ab!")}})
	conformance.True(t, why != nil && why.Code == table.CodeUTF8 && why.Column == "x" &&
		why.Message == "byte 2 of the field is not in the file's encoding", "%+v", why)
}

func TestTimeInOtherUnitIsRejected(t *testing.T) {
	for _, unit := range []string{"timestamp, ns", "local timestamp, ns"} {
		col := table.Column{Name: "c", Type: table.Integer, Unit: unit}
		check(t, col, stamp(5, record.Nanos, true), num(5), "")
		check(t, col, stamp(253402214400e6, record.Micros, true), table.Value{}, table.CodeRange)
	}
}

func TestVersionColumnGivesTimestamps(t *testing.T) {
	columns := []table.Column{{Source: "a", Name: "x", Type: table.String}}
	c := conformance.Try(New([]string{"a", "ts"}, columns, Options{VersionColumn: "ts"})).Must(t)
	for in, want := range map[string]int64{"1704067200000": 1704067200000, "0": 0} {
		got, why := c.Version(&record.Record{Fields: []record.Datum{text("v"), text(in)}})
		conformance.True(t, why == nil && got == want, "%s: %d, %v", in, got, why)
	}
	for _, in := range []string{"-1", "x", "1.5"} {
		rec := &record.Record{Fields: []record.Datum{text("v"), text(in)}}
		_, why := c.Version(rec)
		conformance.True(t, why != nil && why.Column == "ts", "%s: %v", in, why)
		_, why = c.Stamps(rec)
		conformance.True(t, why != nil && why.Column == "ts", "timestamps, %s: %v", in, why)
	}
	conformance.Refused(t, conformance.ErrorOf(New([]string{"a"}, nil, Options{VersionColumn: "ts"})), "",
		"no version column")
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
		in := NewInference(1, Options{Nulls: []string{"NULL"}})
		for _, v := range tt.values {
			in.Add(&record.Record{Fields: []record.Datum{{Kind: record.Text, Bytes: []byte(v)}}})
		}
		in.Add(&record.Record{Fields: []record.Datum{text("x"), text("ragged")}})
		conformance.Equal(t, in.Type(0), tt.want, "%q", tt.values)
	}
	in := NewInference(1, Options{})
	for _, v := range []string{"", "1"} {
		in.Add(&record.Record{Fields: []record.Datum{text(v)}})
	}
	conformance.Equal(t, in.Type(0), table.String, "a quoted empty string among integers")
}

func TestFileTypesAreKept(t *testing.T) {
	for _, tt := range []struct {
		data []record.Datum
		want table.Type
	}{
		{[]record.Datum{{Kind: record.Integer}, {Kind: record.Null}}, table.Integer},
		{[]record.Datum{jsonDatum("1"), jsonDatum("1.5")}, table.Double},
		{[]record.Datum{jsonDatum("9007199254740993"), jsonDatum("1.5")}, table.Any},
		{[]record.Datum{{Kind: record.String}, {Kind: record.Integer}}, table.Any},
		{[]record.Datum{jsonDatum("12345678901234567891")}, table.String},
		{[]record.Datum{jsonDatum("1"), jsonDatum("12345678901234567891")}, table.String},
		{[]record.Datum{jsonDatum("1e400"), jsonDatum("1.5")}, table.String},
		{[]record.Datum{{Kind: record.Boolean}, jsonDatum("1e400")}, table.Any},
		{[]record.Datum{jsonDatum("1"), jsonDatum("-0")}, table.Double},
		{[]record.Datum{{Kind: record.Integer, Int: 1}, {Kind: record.Unsigned, Int: -1}}, table.String},
		{[]record.Datum{{Kind: record.Binary}}, table.Binary},
		{[]record.Datum{{Kind: record.Timestamp, Unit: record.Millis}, {Kind: record.Date}}, table.String},
		{[]record.Datum{{Kind: record.String, Bytes: []byte("5")}}, table.String},
	} {
		in := NewInference(1, Options{})
		for _, d := range tt.data {
			in.Add(&record.Record{Fields: []record.Datum{d}})
		}
		conformance.Equal(t, in.Type(0), tt.want, "%v", tt.data)
	}
}

func TestExportedBinaryValueIsDecodedOrRejected(t *testing.T) {
	json := func(text string) record.Datum { return record.Datum{Kind: record.JSON, Bytes: []byte(text)} }
	inferred := table.Column{Type: table.String, Exact: true, Inferred: true}
	for _, text := range []string{`{"base64":"AP8="}`, `{ "base64" : "AP8=" }`, "{\n\t\"base64\":\"AP8=\"}"} {
		check(t, table.Column{Type: table.Binary}, json(text), bin(0, 255), "")
		check(t, inferred, json(text), str(text), "") // in other formats, it is a nested value
		check(t, table.Column{Type: table.Any, Inferred: true}, json(text), str(text), "")
		check(t, table.Column{Type: table.String}, json(text), str(text), "") // the user gave the type
	}
	tagged := json(`{"base64":"AP8="}`) // a binary value in JSON lines
	tagged.Tagged = true
	check(t, table.Column{Type: table.Any, Inferred: true}, tagged, bin(0, 255), "")
	check(t, table.Column{Type: table.Any}, tagged, bin(0, 255), "")
	check(t, inferred, tagged, table.Value{}, table.CodeType)
	check(t, table.Column{Type: table.String}, tagged, str(`{"base64":"AP8="}`), "")
	check(t, table.Column{Type: table.Binary, Hex: true}, json(`{"base64":"AP8="}`), bin(0, 255), "")
	check(t, table.Column{Type: table.Binary}, json(`{"base64":""}`), table.Value{Type: table.Binary, Bytes: nil}, "")
	for _, text := range []string{`{"base64":"AP8"}`, `{"base64":7}`, `{"base64":"AP8=","x":1}`, `{"Base64":"AP8="}`, `{}`,
		`["base64"]`, `{"base64":"AP8=\u003d"}`, `{"base64":"`} {
		check(t, table.Column{Type: table.Binary}, json(text), table.Value{}, table.CodeType)
	}
	for _, s := range []string{`{"base64":7}`, `{"base64":"","x":1}`, `{"a":{"base64":"AP8="}}`, `[{"base64":"AP8="}]`} {
		check(t, inferred, json(s), str(s), "")
	}
}
