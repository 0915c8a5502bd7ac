package table

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestKeysCompareAsTheServiceOrdersRows(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(v int64) Value { return Value{Type: Integer, Int: v} }),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0xfe, 0xff}), 0, 4), func(b []byte) Value { return Value{Type: Binary, Bytes: b} }),
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
		if got := bytes.Compare(a, b); got != want {
			t.Fatalf("compare %x with %x: %d, want %d", a, b, got, want)
		}
	})
}

func TestDoublesKeepTheirTextAndTheirValue(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1.5: "1.5", 5: "5", -12.25: "-12.25", 1e20: "100000000000000000000", 1e21: "1e+21",
		1e-7: "0.0000001", 1e-8: "1e-08", math.MaxFloat64: "1.7976931348623157e+308",
	} {
		if got := string(AppendDouble(nil, v)); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		got, err := strconv.ParseFloat(string(AppendDouble(nil, v)), 64)
		if err != nil || math.Float64bits(got) != math.Float64bits(v) {
			t.Fatalf("%v reads back as %v: %v", v, got, err)
		}
	})
}

// rowOf appends a row of the size and number of PlainBuffer bytes to a block.
func rowOf(b *Block, size, bytes int) Ref {
	start := len(b.Data)
	b.Data = append(b.Data, "key"...)
	body := len(b.Data)
	b.Data = append(b.Data, make([]byte, bytes)...)
	b.Append(start, body, size, Mark{})
	return Ref{Block: b, Index: int32(len(b.Rows) - 1)}
}

func TestABatchEndsAtTheServicesLimits(t *testing.T) {
	for _, tt := range []struct {
		name       string
		size, body int // of each of two rows
		want       bool
	}{
		{"4 MB together fit", MaxBatchBytes / 2, 10, true},
		{"a byte more does not", MaxBatchBytes/2 + 1, 10, false},
		{"a body that fits", 1, (MaxBodyBytes-bodyBytesPerRequest)/2 - bodyBytesPerRow, true},
		{"a body that is too large", 1, (MaxBodyBytes-bodyBytesPerRequest)/2 - bodyBytesPerRow + 1, false},
	} {
		var batch Batch
		block := new(Block)
		if !batch.Add(rowOf(block, tt.size, tt.body)) {
			t.Fatalf("%s: the first row does not fit", tt.name)
		}
		if got := batch.Add(rowOf(block, tt.size, tt.body)); got != tt.want {
			t.Errorf("%s: fits is %v", tt.name, got)
		}
	}
	var batch Batch
	if !batch.Add(rowOf(new(Block), 2*MaxBatchBytes, 10)) {
		t.Error("a row alone does not fit into an empty batch")
	}
}

func TestNamesFollowTheServicesRules(t *testing.T) {
	long := string(bytes.Repeat([]byte{'a'}, 255))
	for name, ok := range map[string]bool{"a": true, "_9": true, "9a": false, "": false, "a-b": false, long: true, long + "a": false, "表": false} {
		if err := CheckTableName(name); (err == nil) != ok {
			t.Errorf("table name %.20q: %v", name, err)
		}
	}
	for name, ok := range map[string]bool{"a": true, "表 1.x": true, "": false, "#a": false, long: true, long + "a": false, "\xff": false} {
		if err := CheckColumnName(name); (err == nil) != ok {
			t.Errorf("column name %.20q: %v", name, err)
		}
	}
}

func TestTruncatingABlockDropsWhatFollows(t *testing.T) {
	b := &Block{Records: 4}
	for i := range uint32(4) {
		if i == 2 {
			b.RejectAt(Mark{Record: i}, Reason{})
			continue
		}
		start := len(b.Data)
		b.Data = append(b.Data, 'k')
		b.Append(start, len(b.Data), 1, Mark{Record: i})
	}
	b.Truncate(3)
	if len(b.Rows) != 2 || len(b.Rejects) != 1 || b.Records != 3 {
		t.Errorf("%d rows, %d rejects, %d records", len(b.Rows), len(b.Rejects), b.Records)
	}
	b.Truncate(2)
	if len(b.Rows) != 2 || len(b.Rejects) != 0 || b.Records != 2 {
		t.Errorf("%d rows, %d rejects, %d records", len(b.Rows), len(b.Rejects), b.Records)
	}
}
