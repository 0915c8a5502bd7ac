package runfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/objectstore/storetest"
)

var must = conformance.Must

func row(n int) *Row {
	return &Row{Key: fmt.Appendf(nil, "key %d", n), Body: bytes.Repeat([]byte{byte(n)}, n), Size: 3 * n, Source: n % 5,
		Record: int64(1000 + n)}
}

// TestRowsAreReadAsTheyWereWritten has frames of several rows, shards without rows in an object, and several objects.
func TestRowsAreReadAsTheyWereWritten(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory(jobdir.ErrExists)
	w := NewWriter(ctx, store, "runs", 4)
	var want [4][]string
	var size int64
	for n := range 60 {
		shard := []int{0, 0, 2, n / 30}[n%4]
		must(t, w.Add(shard, row(n)))
		want[shard] = append(want[shard], fmt.Sprint(*row(n)))
		size += int64(len(appendRow(nil, row(n))))
		if n == 20 || n == 41 {
			for i := range w.shards {
				if p := &w.shards[i]; p.rows > 0 {
					w.pack(p)
				}
			}
		}
		if n == 41 {
			must(t, w.put())
		}
	}
	must(t, w.Close())
	conformance.True(t, w.Rows == 60 && w.Raw == size && len(w.Objects) == 2 && w.Objects[0].Name == "runs" &&
		w.Objects[1].Name == "runs.2" && w.Index.Name == "runs.index", "%+v, %+v", w.Made.Objects, w.Index)
	must(t, errors.Join(NewWriter(ctx, store, "x", 4).Close(), NewSorted(ctx, store, "x").Close()))
	conformance.Equal(t, len(store.Objects), 3, "objects, none without rows")
	for _, o := range append(slices.Clone(w.Objects), w.Index) {
		conformance.Equal(t, o.Bytes, int64(len(store.Objects[o.Name])), "bytes of %s", o.Name)
	}
	unpacker := new(Unpacker)
	for shard := range 4 {
		var got []string
		for _, e := range conformance.Try(ReadIndex(ctx, store, w.Index, len(w.Objects), shard, 4)).Must(t) {
			text := conformance.Try(json.Marshal(e)).Must(t)
			var again Extent
			must(t, json.Unmarshal(text, &again))
			conformance.Equal(t, again, e, "an extent after a round trip")
			must(t, ReadFrames(ctx, store, w.Objects, &e, unpacker, func(r *Row) error {
				got = append(got, fmt.Sprint(*r))
				return nil
			}))
			frames := conformance.Try(Read(ctx, store, w.Objects, &e)).Must(t)
			refuseDamage(t, unpacker, frames)
			for _, change := range []func(*Extent){func(e *Extent) { e.Sum++ }, func(e *Extent) { e.Object = -1 },
				func(e *Extent) { e.Object = 2 }, func(e *Extent) { e.Offset -= 1000 }, func(e *Extent) { e.Length = -1 },
				func(e *Extent) { e.Length = w.Objects[e.Object].Bytes - e.Offset + 1 }} {
				bad := e
				change(&bad)
				says := map[bool]string{true: "lies outside its object", false: "a checksum is wrong"}[bad.Sum == e.Sum]
				conformance.Refused(t, conformance.ErrorOf(Read(ctx, store, w.Objects, &bad)), says, "%+v", bad)
			}
		}
		conformance.Same(t, got, want[shard], "rows of shard %d", shard)
	}
	for _, text := range []string{"[1,2,3,4]", "[1,2,3,4,5,6]", `"x"`} {
		conformance.True(t, json.Unmarshal([]byte(text), new(Extent)) != nil, "%s is an extent", text)
	}
	index := store.Objects[w.Index.Name]
	for i := range index {
		store.Objects[w.Index.Name] = index[:i] + string(index[i]^1) + index[i+1:]
		_, err := ReadIndex(ctx, store, w.Index, 2, i/indexBytes(2), 4)
		conformance.Is(t, err, errDamaged, "byte %d of the index has changed", i)
	}
	for _, bytes := range []int64{w.Index.Bytes - 1, w.Index.Bytes + 1} {
		_, err := ReadIndex(ctx, store, Object{w.Index.Name, bytes}, 2, 0, 4)
		conformance.Is(t, err, errDamaged, "an index of %d bytes", bytes)
	}
}

// refuseDamage flips each byte of frames, cuts them at each byte, and changes the fields of the first one.
func refuseDamage(t *testing.T, u *Unpacker, frames []byte) {
	none := func(*Row) error { return nil }
	for i := range frames {
		damaged := bytes.Clone(frames)
		damaged[i] ^= 1
		conformance.Is(t, conformance.ErrorOf(u.Rows(damaged, none)), errDamaged, "byte %d has changed", i)
		if whole, _ := wholeFrames(frames[:i]); whole != i {
			conformance.Is(t, conformance.ErrorOf(u.Rows(frames[:i], none)), errDamaged, "cut after %d bytes", i)
		}
	}
	for at, values := range map[int][]uint32{4: {0, 1, mostRaw, mostRaw + 1, math.MaxUint32}, 8: {0, 1000}} {
		for _, v := range values { // with the right checksum
			forged := bytes.Clone(frames)
			binary.LittleEndian.PutUint32(forged[at:], v)
			body := forged[headBytes : headBytes+binary.LittleEndian.Uint32(forged)]
			binary.LittleEndian.PutUint32(forged[12:], frameSum(forged, body))
			conformance.Is(t, conformance.ErrorOf(u.Rows(forged, none)), errDamaged, "%d at byte %d", v, at)
		}
	}
	stop := errors.New("enough")
	n, err := u.Rows(frames, func(*Row) error { return stop })
	conformance.True(t, n == 1 && errors.Is(err, stop), "after %d rows: %v", n, err)
}

func TestDamagedRowsAreRefused(t *testing.T) {
	varints := func(n ...uint64) (raw []byte) {
		for _, v := range n {
			raw = binary.AppendUvarint(raw, v)
		}
		return raw
	}
	for _, c := range []struct {
		raw  []byte
		rows int64
		err  error
	}{
		{nil, 0, nil}, {varints(0, 0, 1, 2, 3), 1, nil}, {append(varints(1, 2, 1, 2, 3), "abc"...), 1, nil},
		{append(varints(1, 2, 1, 2, 3), "ab"...), 0, errDamaged}, {append(varints(4, 0, 1, 2, 3), "abc"...), 0, errDamaged},
		{append(varints(3, 1, 1, 2, 3), "abc"...), 0, errDamaged}, {varints(0, 0, 1, 2), 0, errDamaged},
		{append(varints(1, math.MaxUint64, 1, 2, 3), "abc"...), 0, errDamaged}, {[]byte{0x80}, 0, errDamaged},
		{bytes.Repeat([]byte{0xff}, 11), 0, errDamaged}, {append(varints(0, 0, 1, 2, 3), 1), 1, errDamaged},
	} {
		n, err := eachRow(c.raw, func(*Row) error { return nil })
		conformance.True(t, n == c.rows && errors.Is(err, c.err), "%x: %d rows, %v", c.raw, n, err)
	}
}

// TestObjectsAndFramesEndAtTheirSize has rows that cannot be compressed. One is larger than a window, as extents are.
func TestObjectsAndFramesEndAtTheirSize(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory(jobdir.ErrExists)
	w, s := NewWriter(ctx, store, "runs", 2), NewSorted(ctx, store, "sorted")
	noise := make([]byte, 2*windowBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	const rows = 80
	for n := range rows {
		r := &Row{Key: fmt.Appendf(nil, "%03d", n), Body: noise[n<<8:][:sortedFrame-20], Record: int64(n)}
		if n == 30 {
			r.Body = noise[:windowBytes*3/2]
		}
		must(t, w.Add(n%2, r))
		must(t, s.Add(r))
	}
	must(t, errors.Join(w.Close(), s.Close()))
	conformance.True(t, len(w.Objects) == 2 && len(s.Objects) == 2 && len(s.Frames) == rows &&
		min(w.Objects[0].Bytes, s.Objects[0].Bytes) >= objectBytes && s.Rows == rows, "%v, %v", w.Objects, s.Objects)
	count := 0
	for _, o := range w.Objects {
		for frames := []byte(store.Objects[o.Name]); len(frames) > 0; count++ {
			raw, rows := binary.LittleEndian.Uint32(frames[4:]), binary.LittleEndian.Uint32(frames[8:])
			conformance.True(t, raw <= MaxFrameBytes || rows == 1, "a frame of %d rows has %d bytes", rows, raw)
			frames = frames[headBytes+binary.LittleEndian.Uint32(frames):]
		}
	}
	conformance.Equal(t, count, 41, "frames of two rows")
	unpacker := new(Unpacker)
	check := func(objects []Object, e *Extent, next, step int64) int64 {
		must(t, ReadFrames(ctx, store, objects, e, unpacker, func(r *Row) error {
			conformance.True(t, r.Record == next && string(r.Key) == fmt.Sprintf("%03d", next) &&
				(next == 30 || bytes.Equal(r.Body, noise[next<<8:][:len(r.Body)])), "row %d is row %d", next, r.Record)
			next += step
			return nil
		}))
		return next
	}
	for n, f := range s.Frames {
		conformance.True(t, string(f.First) == fmt.Sprintf("%03d", n) && string(f.Last) == string(f.First) &&
			check(s.Objects, &f.Extent, int64(n), 1) == int64(n+1), "frame %d has the rows %s to %s", n, f.First, f.Last)
	}
	for shard := range 2 {
		next := int64(shard)
		for _, e := range conformance.Try(ReadIndex(ctx, store, w.Index, 2, shard, 2)).Must(t) {
			conformance.True(t, e.Object == 1 || e.Length >= 3*windowBytes, "%+v", e)
			next = check(w.Objects, &e, next, 2)
			for _, bad := range []Extent{{1, e.Offset, e.Length, e.Rows - 1, e.Sum}, {1, e.Offset, e.Length - 9, e.Rows, e.Sum},
				{1, e.Offset, e.Length, e.Rows + 1, e.Sum}} {
				err := ReadFrames(ctx, store, w.Objects, &bad, unpacker, func(*Row) error { return nil })
				conformance.True(t, err != nil, "%+v is read", bad)
			}
		}
		conformance.True(t, next == rows+int64(shard), "shard %d ends with row %d", shard, next-2)
	}
}
