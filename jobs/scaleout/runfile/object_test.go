package runfile

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/objectstore/storetest"
)

// The extent, and one of its rows, are larger than the window.
func TestExtentsAreReadAFewFramesAtATime(t *testing.T) {
	ctx, store, rnd := context.Background(), storetest.NewMemory(jobdir.ErrExists), rand.NewChaCha8([32]byte{1})
	w := NewWriter(ctx, store, "runs", 2)
	const rows = 40
	body := func(n int) []byte {
		size := 200 << 10
		if n == rows/2 {
			size = windowBytes * 3 / 2
		}
		text := make([]byte, size)
		_, _ = rnd.Read(text) // random bytes cannot be compressed
		return text
	}
	var want [][]byte
	for n := range rows {
		want = append(want, body(n))
		conformance.Must(t, w.Add(1, &Row{Key: fmt.Append(nil, n), Body: want[n], Record: int64(n)}))
	}
	conformance.Must(t, w.Close())
	extents := conformance.Try(ReadIndex(ctx, store, w.Index, len(w.Objects), 1, 2)).Must(t)
	conformance.MustTrue(t, len(extents) == 1 && extents[0].Length >= 3*windowBytes, "extents %+v", extents)
	unpacker := new(Unpacker)
	read := func(e Extent) (n int, err error) {
		return n, ReadFrames(ctx, store, w.Objects, &e, unpacker, func(r *Row) error {
			conformance.True(t, string(r.Key) == fmt.Sprint(n) && bytes.Equal(r.Body, want[n]), "row %d differs", n)
			n++
			return nil
		})
	}
	n, err := read(extents[0])
	conformance.True(t, n == rows && err == nil, "%d rows, %v", n, err)
	few := extents[0]
	few.Rows--
	conformance.Refused(t, conformance.ErrorOf(read(few)), "it has 40 rows, want 39", "an extent with a row too many")
	cut := extents[0]
	cut.Length -= 10
	conformance.Refused(t, conformance.ErrorOf(read(cut)), "a frame ends after its extent", "an extent that is cut")
	damaged := bytes.Clone(conformance.Try(store.Get(ctx, w.Objects[0].Name)).Must(t))
	damaged[len(damaged)/3] ^= 1
	conformance.Must(t, store.Put(ctx, w.Objects[0].Name, damaged))
	conformance.Refused(t, conformance.ErrorOf(read(extents[0])), "wrong checksum", "a damaged frame")
}
