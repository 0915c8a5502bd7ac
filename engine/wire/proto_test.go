package wire

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestAShortFieldIsReadAsAnyOther reads fields of all types and lengths, whole, cut off and changed.
func TestAShortFieldIsReadAsAnyOther(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	short := 0
	for range 200_000 {
		var b []byte
		id := protowire.Number(1 + r.IntN(20))
		switch r.IntN(3) {
		case 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, id, protowire.VarintType), r.Uint64()>>r.IntN(64))
		case 1:
			b = protowire.AppendBytes(protowire.AppendTag(b, id, protowire.BytesType), make([]byte, r.IntN(1<<r.IntN(16))))
		case 2:
			b = protowire.AppendFixed32(protowire.AppendTag(b, id, protowire.Fixed32Type), 7)
		}
		b = append(b, make([]byte, r.IntN(3))...)
		switch r.IntN(4) {
		case 0:
			b = b[:r.IntN(len(b)+1)]
		case 1:
			b[r.IntN(min(len(b), 4))] = byte(r.Uint32())
		}
		var quick, slow field
		n := quick.short(b)
		if n == 0 {
			continue
		}
		short++
		if want := slow.any(b); n != want || !reflect.DeepEqual(quick, slow) {
			t.Fatalf("% x: %+v of %d bytes, want %+v of %d", b[:min(len(b), 20)], quick, n, slow, want)
		}
	}
	if short < 10_000 {
		t.Errorf("only %d fields are short", short)
	}
}
