package partitioner

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"tsimport/internal/table"
)

func integer(v int64) table.Value { return table.Value{Type: table.Integer, Int: v} }
func text(s string) table.Value   { return table.Value{Type: table.String, Bytes: []byte(s)} }

// compare orders two key values of one type as the service does.
func compare(a, b table.Value) int {
	return cmp.Or(cmp.Compare(a.Int, b.Int), bytes.Compare(a.Bytes, b.Bytes))
}

func TestAKeyIsFoundInTheLaneWhoseBoundsHoldIt(t *testing.T) {
	integers := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
	// Few letters, so that prefixes of each other, equal heads and long common prefixes are frequent.
	letters := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 12)
	prefix := rapid.SampledFrom([]string{"", "user-0", "a-prefix-longer-than-eight-bytes\x00"})
	rapid.Check(t, func(t *rapid.T) {
		kind, common := rapid.SampledFrom([]table.Type{table.Integer, table.String, table.Binary}).Draw(t, "type"), prefix.Draw(t, "common")
		draw := func(label string) table.Value {
			if kind == table.Integer {
				return integer(integers.Draw(t, label))
			}
			b := letters.Draw(t, label)
			if rapid.Bool().Draw(t, label+" has the prefix") {
				b = append([]byte(common), b...)
			}
			return table.Value{Type: kind, Bytes: b}
		}
		bounds := make([]table.Value, rapid.IntRange(0, 40).Draw(t, "bounds"))
		for i := range bounds {
			bounds[i] = draw("bound")
		}
		m := NewMap(bounds)
		for i := range 20 {
			v := draw("value")
			if i%3 == 0 && len(bounds) > 0 {
				v = bounds[i%len(bounds)]
			}
			key := table.AppendKey(nil, v)
			if rapid.Bool().Draw(t, "second column") {
				key = table.AppendKey(key, keyColumn.Draw(t, "second"))
			}
			lane := m.Find(key)
			if lower, ok := m.LowerValue(lane); ok && compare(v, lower) < 0 {
				t.Fatalf("%v is in lane %d, which begins at %v", v, lane, lower)
			}
			if lane+1 < m.Len() {
				if upper, _ := m.LowerValue(lane + 1); compare(v, upper) >= 0 {
					t.Fatalf("%v is in lane %d, which ends before %v", v, lane, upper)
				}
			}
		}
	})
}

var keyColumn = rapid.OneOf(
	rapid.Map(rapid.Int64(), integer),
	rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) table.Value { return table.Value{Type: table.Binary, Bytes: b} }),
)

func TestBoundsAreSortedAndCountOnce(t *testing.T) {
	m := NewMap([]table.Value{integer(7), integer(-7), {}, integer(7), integer(0), {Type: table.Double, Double: 1}})
	if m.Len() != 4 {
		t.Fatalf("%d lanes, want 4", m.Len())
	}
	for i, want := range []int64{-7, 0, 7} {
		if v, ok := m.LowerValue(i + 1); !ok || v.Int != want || !bytes.Equal(m.Lower(i+1), table.AppendKey(nil, integer(want))) {
			t.Errorf("lane %d begins at %v, %x; want %d", i+1, v, m.Lower(i+1), want)
		}
	}
	if v, ok := m.LowerValue(0); ok || m.Lower(0) != nil {
		t.Errorf("the first lane begins at %v", v)
	}
}

func TestWithoutABoundThereIsOneLane(t *testing.T) {
	for _, m := range []*Map{NewMap(nil), NewMap([]table.Value{})} {
		if m.Len() != 1 || m.Find(table.AppendKey(nil, text("x"))) != 0 || m.Find(nil) != 0 {
			t.Errorf("%d lanes", m.Len())
		}
	}
}

func TestMapsAreEqualWhenTheyCutAlike(t *testing.T) {
	a, b := NewMap([]table.Value{text("a"), text("b")}), NewMap([]table.Value{text("b"), text("a"), text("b")})
	if !a.Equal(b) || !NewMap(nil).Equal(NewMap(nil)) {
		t.Error("maps of the same bounds differ")
	}
	if a.Equal(NewMap([]table.Value{text("a")})) || a.Equal(NewMap([]table.Value{text("a"), text("c")})) || a.Equal(NewMap(nil)) {
		t.Error("maps of different bounds are equal")
	}
}

func TestBoundsOfAnotherTypeThanTheKeyAreHarmless(t *testing.T) {
	m := NewMap([]table.Value{integer(5), text(""), text("integer?"), integer(-5), {Type: table.Binary, Bytes: []byte{0x80}}})
	rapid.Check(t, func(t *rapid.T) {
		key := table.AppendKey(nil, keyColumn.Draw(t, "key"))
		key = key[:rapid.IntRange(0, len(key)).Draw(t, "cut")]
		if lane := m.Find(key); lane < 0 || lane >= m.Len() {
			t.Fatalf("%x is in lane %d of %d", key, lane, m.Len())
		}
	})
}

func TestAMapKeepsItsBoundsWhenTheCallersBytesChange(t *testing.T) {
	v := text("m")
	m := NewMap([]table.Value{v})
	v.Bytes[0] = 'a'
	if got, _ := m.LowerValue(1); string(got.Bytes) != "m" || m.Find(table.AppendKey(nil, text("b"))) != 0 {
		t.Errorf("the bound became %s", got.Bytes)
	}
}

func BenchmarkFind(b *testing.B) {
	for name, value := range map[string]func(i int) table.Value{
		"integer":          func(i int) table.Value { return integer(int64(i) * 1000) },
		"string":           func(i int) table.Value { return text(fmt.Sprintf("%08x", i*1000)) },
		"string, same end": func(i int) table.Value { return text(fmt.Sprintf("customer-number-%08x", i*1000)) },
	} {
		for _, lanes := range []int{32, 1024} {
			b.Run(fmt.Sprintf("%s/%d", name, lanes), func(b *testing.B) {
				var bounds []table.Value
				for i := 1; i < lanes; i++ {
					bounds = append(bounds, value(i))
				}
				m := NewMap(bounds)
				keys := make([][]byte, 1024)
				for i := range keys {
					keys[i] = table.AppendKey(table.AppendKey(nil, value(i*7919%lanes)), integer(1))
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					m.Find(keys[i&1023])
					i++
				}
			})
		}
	}
}
