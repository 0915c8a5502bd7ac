package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
)

func TestOrderingKeysSortLikeRows(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(v int64) Value { return Value{Type: Integer, Int: v} }),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0xfe, 0xff}), 0, 4),
			func(b []byte) Value { return Value{Type: Binary, Bytes: b} }),
	)
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 3).Draw(t, "columns")
		var a, b []byte
		want := 0
		for range columns {
			v, w := value.Draw(t, "v"), value.Draw(t, "w")
			if v.Type != w.Type {
				w = v
			}
			a, b = AppendKey(a, v), AppendKey(b, w)
			if want == 0 {
				want = cmp.Or(cmp.Compare(v.Int, w.Int), bytes.Compare(v.Bytes, w.Bytes))
			}
		}
		conformance.MustEqual(t, bytes.Compare(a, b), want, "compare %x with %x", a, b)
	})
}

func TestDoubleRoundTrip(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1.5: "1.5", 5: "5", -12.25: "-12.25", 1e20: "100000000000000000000", 1e21: "1e+21",
		1e-7: "0.0000001", 1e-8: "1e-08", math.MaxFloat64: "1.7976931348623157e+308",
	} {
		conformance.Equal(t, string(AppendDouble(nil, v)), want, "%v written", v)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		got, err := strconv.ParseFloat(string(AppendDouble(nil, v)), 64)
		conformance.MustTrue(t, err == nil && math.Float64bits(got) == math.Float64bits(v), "%v becomes %v: %v", v, got, err)
	})
}

// TestShortDecimalsAgreeWithStrconv tests decimals with few digits and the doubles next to them.
func TestShortDecimalsAgreeWithStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-2e15, 2e15).Draw(t, "digits") / rapid.SampledFrom([]int64{1, 1000, 1e6, 1e9, 1e12}).Draw(t,
			"/")
		v := float64(n) / rapid.SampledFrom([]float64{1, 10, 100, 1000, 10_000, 1e9}).Draw(t, "power")
		for _, v := range []float64{v, math.Nextafter(v, 0), math.Nextafter(v, math.Inf(1)), v / 3} {
			if a := math.Abs(v); a != 0 && a < 1e-7 {
				continue
			}
			got, want := string(AppendDouble([]byte("x"), v)), string(strconv.AppendFloat([]byte("x"), v, 'f', -1, 64))
			conformance.MustEqual(t, got, want, "%x is written", v)
		}
	})
}

func BenchmarkAppendDouble(b *testing.B) {
	var text []byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		text = AppendDouble(text[:0], float64(1000+i%9_000_000)/100)
	}
}

// rowOf appends a row with the given accounted size and number of PlainBuffer bytes to a block.
func rowOf(b *Block, size, bytes int) Ref {
	start := len(b.Data)
	b.Data = append(b.Data, "key"...)
	body := len(b.Data)
	b.Data = append(b.Data, make([]byte, bytes)...)
	b.Append(start, body, size, Span{}, nil)
	return Ref{Block: b, Index: int32(len(b.Rows) - 1)}
}

func TestBatchEndsAtServiceLimits(t *testing.T) {
	for _, tt := range []struct {
		name       string
		size, body int // accounted size and PlainBuffer bytes of each of two rows
		want       bool
	}{
		{"4 MB together fit", MaxBatchBytes / 2, 10, true},
		{"a byte more does not", MaxBatchBytes/2 + 1, 10, false},
		{"a body that fits", 1, (MaxBodyBytes-bodyBytesPerRequest)/2 - bodyBytesPerRow, true},
		{"a body that is too large", 1, (MaxBodyBytes-bodyBytesPerRequest)/2 - bodyBytesPerRow + 1, false},
	} {
		var batch Batch
		block := new(Block)
		conformance.MustEqual(t, batch.Add(rowOf(block, tt.size, tt.body)), true, "%s: the first row does not fit", tt.name)
		conformance.Equal(t, batch.Add(rowOf(block, tt.size, tt.body)), tt.want, "%s: fits", tt.name)
	}
	var batch Batch
	conformance.Equal(t, batch.Add(rowOf(new(Block), 2*MaxBatchBytes, 10)), true, "a row alone does not fit")
}

func TestNameRules(t *testing.T) {
	long := string(bytes.Repeat([]byte{'a'}, 255))
	for name, ok := range map[string]bool{"a": true, "_9": true, "9a": false, "": false, "a-b": false, long: true, long +
		"a": false, "表": false} {
		conformance.Equal(t, (CheckTableName(name) == nil), ok, "table name %.20q", name)
	}
	for name, ok := range map[string]bool{"a": true, "表 1.x": true, "": false, "#a": false, long: true, long + "a": false,
		"\xff": false} {
		conformance.Equal(t, (CheckColumnName(name) == nil), ok, "column name %.20q", name)
	}
}

// packedBlock draws a block of rows with keys, bodies and records of all lengths.
func packedBlock(t *rapid.T) *Block {
	b := &Block{Split: &Split{Source: "a.csv", Offset: 100, FirstRecord: 7, FirstLine: 9}}
	for i := range rapid.IntRange(0, 20).Draw(t, "rows") {
		text := rapid.SliceOfN(rapid.Byte(), 0, 40)
		start := len(b.Data)
		b.Data = append(b.Data, text.Draw(t, "key")...)
		body := len(b.Data)
		b.Data = append(b.Data, text.Draw(t, "body")...)
		b.Append(start, body, rapid.IntRange(0, 1<<22).Draw(t, "size"), Span{Start: uint32(10 * i), Record: uint32(i),
			Line: uint32(2 * i)}, text.Draw(t, "record"))
	}
	return b
}

func sameRow(t *rapid.T, got, want Ref) {
	a, b := got.Reject(Reason{}), want.Reject(Reason{})
	conformance.MustTrue(t, bytes.Equal(got.Key(), want.Key()) && bytes.Equal(got.Body(), want.Body()) &&
		bytes.Equal(a.Raw, b.Raw) && a.Location == b.Location && got.Row().Hash == want.Row().Hash &&
		got.Row().Size() == want.Row().Size() && got.Row().Bytes() == want.Row().Bytes(),
		"row %d came out as another: %+v, want %+v", want.Index, *got.Row(), *want.Row())
}

func TestRowsSurviveCopyingAndPacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := packedBlock(t)
		var some []int32
		for i := range b.Rows {
			if rapid.Bool().Draw(t, "keep") {
				some = append(some, int32(i))
			}
		}
		var c Block
		c.Split = b.Split
		c.Copy(b, some)
		conformance.MustEqual(t, len(c.Data), b.Memory(some), "bytes of the copy")
		u, rest, err := Unpack(b.Split, append(b.AppendPacked(nil, some), "rest"...), len(some))
		conformance.MustTrue(t, err == nil && string(rest) == "rest", "unpack: %v, rest %q", err, rest)
		for n, i := range some {
			want := Ref{b, i}
			sameRow(t, Ref{&c, int32(n)}, want)
			sameRow(t, Ref{u, int32(n)}, want)
		}
	})
}

func TestDamagedPackedBlockIsAnError(t *testing.T) {
	var b Block
	b.Data = append(b.Data, "keybody"...)
	b.Append(0, 3, 10, Span{}, []byte("record"))
	packed := b.AppendPacked(nil, []int32{0})
	for n := range packed {
		_, _, err := Unpack(nil, packed[:n], 1)
		conformance.True(t, err != nil, "the first %d bytes make a block", n)
	}
	packed[2] = 0xff // the length of the key is now 16 MB
	_, _, err := Unpack(nil, packed, 1)
	conformance.True(t, err != nil, "a length beyond the end makes a block")
}

func TestRejectHasLocation(t *testing.T) {
	b := &Block{Split: &Split{Source: "a.csv", Offset: 1000, FirstRecord: 50, FirstLine: 61}}
	b.Data = append(b.Data, "kb"...)
	b.Append(0, 1, 1, Span{Start: 30, End: 36, Record: 2, Line: 3}, []byte("a,b,c\n"))
	got := Ref{Block: b}.Reject(Reason{Code: CodeType})
	want := Location{Source: "a.csv", Record: 53, Line: 65, Offset: 1030}
	conformance.True(t, got.Location == want && string(got.Raw) == "a,b,c\n" && got.Reason.Code == CodeType, "%+v", got)
}

// keyValue draws values that are hard to encode: extreme integers, bytes 0 and 1, and prefixes.
var keyValue = rapid.OneOf(
	rapid.Map(rapid.Int64(), func(v int64) Value { return Value{Type: Integer, Int: v} }),
	rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 6), func(b []byte) Value {
		return Value{Type: Binary, Bytes: append([]byte{}, b...)}
	}),
	rapid.Map(rapid.StringN(0, 5, -1), func(s string) Value { return Value{Type: String, Bytes: []byte(s)} }),
)

func TestFirstKeyColumnRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := keyValue.Draw(t, "first")
		key := AppendKey(nil, v)
		want := len(key)
		for range rapid.IntRange(0, 2).Draw(t, "more columns") {
			key = AppendKey(key, keyValue.Draw(t, "next"))
		}
		conformance.MustEqual(t, FirstColumn(v.Type, key), want, "bytes of the first column of %x", key)
		got, n, err := DecodeKey(v.Type, key)
		conformance.MustTrue(t, err == nil && n == want, "decode %x: %d bytes, %v, want %d", key, n, err, want)
		conformance.MustEqual(t, gocmp.Diff(v, got), "", "(-want +got)")
	})
}

func TestTruncatedKeyIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := keyValue.Draw(t, "value")
		key := AppendKey(nil, v)
		cut := key[:rapid.IntRange(0, len(key)-1).Draw(t, "cut")]
		conformance.MustEqual(t, FirstColumn(v.Type, cut), -1, "bytes of the first column of the cut key %x", cut)
		got, _, err := DecodeKey(v.Type, cut)
		conformance.MustTrue(t, err != nil, "the cut key %x decodes to %v", cut, got)
	})
}

func TestInvalidOrderingKeysAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		t   Type
		key []byte
	}{
		"a type no key has":        {Double, bytes.Repeat([]byte{1}, 8)},
		"a zero escaped by a two":  {String, []byte{'a', 0, 2, 0, 1}},
		"a zero escaped by a zero": {Binary, []byte{0, 0, 0, 1}},
	} {
		v, _, err := DecodeKey(tt.t, tt.key)
		conformance.True(t, err != nil, "%s decodes to %v", name, v)
	}
}

func TestLocalTimeAtClockChanges(t *testing.T) {
	for _, tt := range []struct{ zone, wall, want string }{
		{"America/New_York", "2024-03-10 01:59:59", "2024-03-10T06:59:59Z"},
		{"America/New_York", "2024-03-10 02:00:00", ""},
		{"America/New_York", "2024-03-10 02:59:59", ""},
		{"America/New_York", "2024-03-10 03:00:00", "2024-03-10T07:00:00Z"},
		{"America/New_York", "2024-11-03 00:59:59", "2024-11-03T04:59:59Z"},
		{"America/New_York", "2024-11-03 01:30:00", "2024-11-03T05:30:00Z"}, // the first of two instants
		{"America/New_York", "2024-11-03 02:00:00", "2024-11-03T07:00:00Z"},
		{"Europe/Berlin", "2024-03-31 02:30:00", ""},
		{"Europe/Berlin", "2024-03-31 03:00:00", "2024-03-31T01:00:00Z"},
		{"Europe/Berlin", "2024-10-27 02:00:00", "2024-10-27T00:00:00Z"},
		{"Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27T00:30:00Z"}, // the first of two instants
		{"Europe/Berlin", "2024-10-27 03:00:00", "2024-10-27T02:00:00Z"},
		{"Australia/Lord_Howe", "2024-10-06 02:00:00", ""},
		{"Australia/Lord_Howe", "2024-10-06 02:29:59", ""},
		{"Australia/Lord_Howe", "2024-10-06 02:30:00", "2024-10-05T15:30:00Z"},
		{"Australia/Lord_Howe", "2024-04-07 01:45:00", "2024-04-06T14:45:00Z"}, // the first of two instants
		{"Asia/Shanghai", "1991-04-14 02:30:00", ""},
		{"Asia/Shanghai", "1991-09-15 01:30:00", "1991-09-14T16:30:00Z"}, // the first of two instants
		{"Asia/Shanghai", "2024-04-14 02:30:00", "2024-04-13T18:30:00Z"},
		{"Pacific/Apia", "2011-12-29 23:59:59", "2011-12-30T09:59:59Z"},
		{"Pacific/Apia", "2011-12-30 12:00:00", ""},
		{"Pacific/Apia", "2011-12-31 00:00:00", "2011-12-30T10:00:00Z"},
		{"UTC", "2024-03-10 02:30:00", "2024-03-10T02:30:00Z"},
	} {
		zone := conformance.Try(time.LoadLocation(tt.zone)).Must(t)
		at, ok := LocalTime(conformance.Try(time.Parse(time.DateTime, tt.wall)).Must(t), zone)
		got := ""
		if ok {
			got = at.UTC().Format(time.RFC3339)
			conformance.Equal(t, at.In(zone).Format(time.DateTime), tt.wall, "%s in %s", tt.wall, tt.zone)
		}
		conformance.Equal(t, got, tt.want, "%s in %s", tt.wall, tt.zone)
	}
}

func TestLocalTimeFindsEveryInstant(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Shanghai",
		"Pacific/Apia", "Africa/Casablanca"} {
		zone := conformance.Try(time.LoadLocation(name)).Must(t)
		found := map[int64]time.Time{}
		for at := time.Date(1991, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2025; at = at.Add(30 * time.Minute) {
			switch at.Year() { // years of clock changes in Shanghai, of the day that Apia skipped, and of present clock changes
			case 1992:
				at = at.AddDate(2011-1992, 0, 0)
			case 2012:
				at = at.AddDate(2024-2012, 0, 0)
			}
			_, offset := at.In(zone).Zone()
			wall := at.Add(time.Duration(offset) * time.Second)
			got, ok := LocalTime(wall, zone)
			first, twice := found[wall.Unix()]
			if !twice {
				first = at
				found[wall.Unix()] = at
			}
			conformance.MustTrue(t, ok && got.Equal(first), "%s in %s: %s (%v), want %s", wall, name, got, ok, first)
		}
	}
}

// TestKeepsDouble compares KeepsDouble with exact arithmetic.
func TestKeepsDouble(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		digits := strconv.FormatUint(rnd.Uint64()>>rnd.IntN(60), 10) + strconv.FormatUint(rnd.Uint64()>>rnd.IntN(64), 10)
		text := digits[:1+rnd.IntN(len(digits))]
		if at := rnd.IntN(len(text) + 1); rnd.IntN(2) == 0 && at < len(text) {
			text = text[:at] + "." + text[at:]
			if at == 0 {
				text = "0" + text
			}
		}
		if rnd.IntN(3) == 0 {
			text += "e" + strconv.Itoa(rnd.IntN(600)-300)
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		given, ok := new(big.Rat).SetString(text)
		conformance.MustEqual(t, ok, true, "%q is not a number", text)
		n, _ := significant(nil, []byte(text))
		rounded, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', max(len(n)-1, 0), 64))
		conformance.MustEqual(t, KeepsDouble([]byte(text), f), rounded.Cmp(given) == 0, "%s, its double is %v: kept", text, f)
	}
}

func TestPrintsDouble(t *testing.T) {
	for text, want := range map[string]bool{
		"8.76712776820554e-05": true, "1e+16": true, "1e-05": true, "5e-324": true, "1.7976931348623157e+308": true, // Python
		"8.76712776820554E-5": true, "1.0E10": true, "4.9E-324": true, "23.0": true, "-0.0": true, "100.0": true, // Java
		"0.10000000000000001": true, "9.9999999999999995e-08": true, "1e+20": true, "0": true, "-0": true, // C
		"1e+06": true, "1.23456789e+08": true, "1e-7": true, "0.0000001": true, "100000000000000000000": true, // Go
		"10.50": false, "007": false, "+5": false, "1e3": false, "1.5e2": false, "2E10": false, "1E5": false, "1.0e-5": false,
		"1e16": false, "12e-5": false, "0.5e-05": false, "1e-005": false, ".5": false, "5.": false, "23.00": false,
		"1.0E+10": false, "1.0E-05": false, "0.1000000000000000055": false, "9007199254740993.0": false, "1e+5": false,
		"1.10e-05": false, "12345678901234567890": false,
	} {
		f, err := strconv.ParseFloat(text, 64)
		got := PrintsDouble([]byte(text), f)
		conformance.True(t, err == nil && got == want, "%s: %v, %v", text, got, err)
	}
	printers := map[string]func(f float64) string{
		"ours":   func(f float64) string { return string(AppendDouble(nil, f)) },
		"go":     func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) },
		"json":   func(f float64) string { text, _ := json.Marshal(f); return string(text) },
		"%.17g":  func(f float64) string { return cPrint(f) },
		"python": pythonPrint,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		f := math.Float64frombits(random.Uint64())
		if random.IntN(2) == 0 {
			f = float64(random.IntN(2e6)-1e6) / math.Pow10(random.IntN(9))
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		for by, print := range printers {
			text := print(f)
			conformance.MustTrue(t, PrintsDouble([]byte(text), f), "%s prints %s", by, text)
		}
	}
}

// cPrint formats f like C's %.17g.
func cPrint(f float64) string {
	text := strconv.FormatFloat(f, 'e', 16, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 17 {
		return strings.TrimSuffix(strings.TrimRight(mantissa, "0"), ".") + "e" + exponent
	} else if text = strconv.FormatFloat(f, 'f', 16-n, 64); strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// pythonPrint formats f like Python's repr.
func pythonPrint(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
