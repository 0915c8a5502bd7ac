package table

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// keyValue draws values that are hard for an encoding: the ends of the integers, zeros and ones in bytes, prefixes.
var keyValue = rapid.OneOf(
	rapid.Map(rapid.Int64(), func(v int64) Value { return Value{Type: Integer, Int: v} }),
	rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 6), func(b []byte) Value {
		return Value{Type: Binary, Bytes: append([]byte{}, b...)}
	}),
	rapid.Map(rapid.StringN(0, 5, -1), func(s string) Value { return Value{Type: String, Bytes: []byte(s)} }),
)

func TestTheFirstColumnOfAKeySurvivesTheRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := keyValue.Draw(t, "first")
		key := AppendKey(nil, v)
		want := len(key)
		for range rapid.IntRange(0, 2).Draw(t, "more columns") {
			key = AppendKey(key, keyValue.Draw(t, "next"))
		}
		if n := FirstColumn(v.Type, key); n != want {
			t.Fatalf("first column of %x is %d bytes, want %d", key, n, want)
		}
		got, n, err := DecodeKey(v.Type, key)
		if err != nil || n != want {
			t.Fatalf("decode %x: %d bytes, %v, want %d", key, n, err, want)
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestACutKeyIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := keyValue.Draw(t, "value")
		key := AppendKey(nil, v)
		cut := key[:rapid.IntRange(0, len(key)-1).Draw(t, "cut")]
		if n := FirstColumn(v.Type, cut); n != -1 {
			t.Fatalf("first column of the cut key %x is %d bytes", cut, n)
		}
		if got, _, err := DecodeKey(v.Type, cut); err == nil {
			t.Fatalf("the cut key %x decodes to %v", cut, got)
		}
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
		if v, _, err := DecodeKey(tt.t, tt.key); err == nil {
			t.Errorf("%s decodes to %v", name, v)
		}
	}
}
