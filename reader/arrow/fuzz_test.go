package arrow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

var errEnough = errors.New("enough")

// allocated is the total number of bytes allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// small limits memory as a small process would.
var small = Options{MaxMetadata: 1 << 20, MaxDictionary: 4 << 20, MaxBody: 4 << 20, SplitRows: 50}

// hostile reads untrusted bytes, up to some rows, and fails if that takes much memory or the decoder panics, even if
// Parse would hide the panic.
func hostile(t *testing.T, b []byte, flatten bool) {
	t.Helper()
	o := small
	o.Flatten = flatten
	before := allocated()
	check := func(err error) {
		conformance.MustTrue(t, err == nil || !strings.Contains(err.Error(), "damaged data"), "panic: %v", err)
	}
	check(hostileFile(t, b, o))
	check(hostileStream(t, b, o))
	spent := allocated() - before
	conformance.MustTrue(t, spent <= 512<<20+uint64(len(b))*2000, "took %d bytes of memory", spent)
}

const enough = 200 // rows

func hostileFile(t *testing.T, b []byte, o Options) error {
	f, err := Open(bytes.NewReader(b), int64(len(b)), "x.arrow", o)
	if err != nil {
		return err
	}
	p := f.NewParser(every(f.Columns()))
	p.LimitMemory(4 << 20)
	rows := 0
	for _, s := range f.Splits() {
		n := int64(0)
		err := p.Parse(s, func(*record.Record) error {
			n++
			if rows++; rows > enough {
				return errEnough
			}
			return nil
		})
		conformance.MustTrue(t, err != nil || n == s.Rows, "%d rows of %d", n, s.Rows)
		if err != nil {
			return err
		}
	}
	return nil
}

func hostileStream(t *testing.T, b []byte, o Options) error {
	s, err := NewStream(bytes.NewReader(b), "x.arrows", o)
	if err != nil {
		return err
	}
	p := s.NewParser(every(s.Columns()))
	p.LimitMemory(4 << 20)
	for rows := 0; rows < enough; {
		batch, err := s.Next()
		if err != nil {
			return err
		}
		for _, split := range batch.Splits() {
			n := int64(0)
			err := p.ParseBatch(batch, split, func(*record.Record) error {
				n++
				if rows++; rows > enough {
					return errEnough
				}
				return nil
			})
			conformance.MustTrue(t, err != nil || n == split.Rows, "%d rows of %d", n, split.Rows)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func FuzzRead(f *testing.F) {
	for _, file := range testFiles(f) {
		if b := read(f, file); len(b) < 30_000 {
			f.Add(b, false)
			f.Add(b, true)
		}
	}
	f.Fuzz(hostile)
}

func TestDamagedBytesNeitherPanicNorRunAway(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for _, file := range testFiles(t) {
		b := read(t, file)
		step := len(b)/100 + 1
		for i := 0; i < len(b); i += step {
			for _, x := range []byte{b[i] ^ 0xff, b[i] ^ 1, b[i] ^ 0x80, 0} {
				damaged := bytes.Clone(b)
				damaged[i] = x
				hostile(t, damaged, i%2 == 0)
			}
		}
	}
}

// schemaOf returns the metadata of the first message of a stream, and their offset.
func schemaOf(t *testing.T, b []byte) (*flat, int) {
	t.Helper()
	metadata, taken, err := nextMetadata(bytes.NewReader(b), 1<<20)
	conformance.Must(t, err)
	return newFlat(metadata), int(taken) - len(metadata)
}

// ownDescendant is a stream whose schema has a list that is its own field. The offset to it wraps round 32 bits.
func ownDescendant(t *testing.T) []byte {
	b := bytes.Clone(read(t, filepath.Join("testdata", "nested.arrows")))
	f, start := schemaOf(t, b)
	head, _ := f.root().child(2)
	for _, field := range head.tables(1) {
		if at, n := field.list(5, 4); n == 1 {
			binary.LittleEndian.PutUint32(b[start+at:], uint32(field.at-at))
			return b
		}
	}
	t.Fatal("no list in the schema")
	return nil
}

func TestCyclicSchemaIsRefused(t *testing.T) {
	b := ownDescendant(t)
	if to := os.Getenv("TSIMPORT_KEEP_HOSTILE"); to != "" { // to show it to other readers
		conformance.Must(t, os.WriteFile(to, b, 0o644))
	}
	conformance.Is(t, conformance.ErrorOf(NewStream(bytes.NewReader(b), "x", Options{})), errMetadata, "a stream")
	conformance.Is(t, conformance.ErrorOf(Open(bytes.NewReader(b), int64(len(b)), "x", Options{})), errMetadata, "a file")
}

func TestSharedMetadataTablesCostOnlyTheirBytes(t *testing.T) {
	// Each of 40 tables lists the next one twice: 2^40 fields in a kilobyte.
	var b []byte
	put := func(v int) { b = binary.LittleEndian.AppendUint32(b, uint32(v)) }
	put(4)
	for range 40 {
		put(-(4 + 4)) // the table's list of fields is after it
		put(20)
		b = append(b, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0) // field 5 is at 4
		put(2)
		put(8)
		put(4)
	}
	count := 0
	var walk func(flatTable)
	walk = func(t flatTable) {
		count++
		for _, c := range t.tables(5) {
			walk(c)
		}
	}
	err := func() (err error) {
		defer catch(&err)
		walk(newFlat(b).root())
		return nil
	}()
	conformance.True(t, count >= 40 && count <= len(b) && errors.Is(err, errMetadata), "%d tables: %v", count, err)
}

func TestFalseLengthsAllocateNothing(t *testing.T) {
	head := func(n uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, n) }
	for _, b := range [][]byte{head(1 << 31), head(1<<32 - 1), head(1 << 19),
		append([]byte("ARROW1\x00\x00"), head(1<<19)...), []byte("ARROW1"), []byte("FEA1\x00\x00\x00\x00")} {
		hostile(t, b, false)
		before := allocated()
		_, err1 := NewStream(bytes.NewReader(b), "x", Options{})
		_, err2 := Open(bytes.NewReader(b), int64(len(b)), "x", Options{})
		conformance.True(t, err1 != nil && err2 != nil, "%x: %v, %v", b, err1, err2)
		spent := allocated() - before
		conformance.True(t, spent <= 4<<20, "%x: %d bytes of memory", b, spent)
	}
}

func TestBufferWithWrongSizeIsRefused(t *testing.T) {
	for _, codec := range []string{"zstd", "lz4"} {
		b := read(t, "testdata/many_"+codec+".arrow")
		f := conformance.Try(Open(bytes.NewReader(b), int64(len(b)), "x", Options{})).Must(t)
		at := f.batches[0]
		m := conformance.Try(f.message(at)).Must(t)
		meta := conformance.Try(readBatch(m.head, m.body, version5)).Must(t)
		for i := 0; i < len(meta.buffers); i += 2 {
			place := at.at + at.metadata + meta.buffers[i]
			if meta.buffers[i+1] == 0 || binary.LittleEndian.Uint64(b[place:]) == 1<<64-1 {
				continue
			}
			for _, size := range []uint64{0, 1, 1 << 20, 1 << 32, 1 << 62} {
				damaged := bytes.Clone(b)
				binary.LittleEndian.PutUint64(damaged[place:], size)
				conformance.Refused(t, conformance.ErrorOf(readSplits(damaged, Options{})), "",
					"%s: buffer %d says that it has %d bytes, and was read", codec, i/2, size)
				hostile(t, damaged, false)
			}
		}
	}
}

func TestDamagedDictionaryIsNotMistakenForAnother(t *testing.T) {
	b := conformance.Read(t, "testdata", "deltas.arrow")
	b[571] ^= 0xff // where the field is that says that it adds to the values before
	anywhere, inOrder := hostileFile(t, b, small), hostileStream(t, b, small)
	for name, err := range map[string]error{"anywhere": anywhere, "in order": inOrder} {
		conformance.Is(t, err, errMetadata, "read %s", name)
	}
}
