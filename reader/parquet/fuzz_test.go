package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

var everyDamage = flag.Bool("every-damage", false, "damage each byte in five ways, not in one of them in turn")

var errEnough = errors.New("enough")

// allocated is how many bytes were ever allocated. Unlike runtime.ReadMemStats it does not stop the world, which thousands
// of damaged files would spend most of their time with.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// hostile reads a file that may be anything, up to some rows, and fails when that takes much time or memory or when
// the decoder panics, even though Parse would hide it.
func hostile(t *testing.T, b []byte, o Options) {
	t.Helper()
	before := allocated()
	start := time.Now()
	rows := 0
	f, err := Open(bytes.NewReader(b), int64(len(b)), "x.parquet", o)
	if err == nil {
		p := f.NewParser(every(f))
		for _, s := range f.Splits() {
			n := int64(0)
			err = p.Parse(s, func(*record.Record) error {
				n++
				if rows++; rows > 20_000 {
					return errEnough
				}
				return nil
			})
			if err == nil && n != s.Rows {
				t.Fatalf("short split: %d rows of %d", n, s.Rows)
			}
			if err != nil {
				break
			}
		}
	}
	after := allocated()
	if err != nil && strings.Contains(err.Error(), "x.parquet: damaged") || err != nil && strings.Contains(err.Error(), "damaged page") {
		t.Fatalf("panic: %v", err)
	}
	if took := time.Since(start); took > 2*time.Minute {
		t.Fatalf("took %v: %v", took, err)
	}
	if spent := after - before; spent > 512<<20+uint64(len(b))*2000 {
		t.Fatalf("took %d bytes of memory: %v", spent, err)
	}
}

func seeds(t testing.TB) [][]byte {
	s := "text"
	var b, c, d bytes.Buffer
	rows := []shapes{{ID: 1, List: []int64{1, 2}, Bare: []string{"x"}, Struct: &inner{B: &s}, Map: map[string]float64{"k": 1}, Pairs: map[int32]bool{1: true}}, {ID: 2}, {ID: 3, Deep: [][]inner{{{A: 1}}}}}
	type flat struct {
		A string  `parquet:"a,dict,snappy"`
		B int64   `parquet:"b,delta,zstd"`
		C *int32  `parquet:"c,optional,gzip"`
		D string  `parquet:"d,delta,lz4"`
		E float32 `parquet:"e,split,brotli"`
		F bool    `parquet:"f"`
	}
	n := int32(5)
	flats := []flat{{A: "x", B: 1, C: &n, D: "abc"}, {A: "y", D: "abd", F: true}, {A: "x", B: 1 << 40}}
	for _, err := range []error{pq.Write(&b, rows), pq.Write(&c, flats), pq.Write(&d, flats, pq.DataPageVersion(1))} {
		must(t, err)
	}
	return [][]byte{b.Bytes(), c.Bytes(), d.Bytes(), []byte("PAR1"), []byte("PAR1\x15\x00\x00\x01\x00\x00\x00PAR1")}
}

func FuzzOpen(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b, false)
		f.Add(b, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, flatten bool) { hostile(t, b, Options{Flatten: flatten, SplitRows: 2}) })
}

func TestNoDamagedByteMakesTheDecoderPanicOrRunAway(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // thousands of short-lived decoders in a heap of a few megabytes
	for _, b := range seeds(t) {
		for i := range b {
			for way, x := range []byte{b[i] ^ 0xff, b[i] ^ 1, b[i] ^ 0x80, b[i] + 1, 0} {
				if way != i%5 && !*everyDamage { // make fuzz
					continue
				}
				damaged := bytes.Clone(b)
				damaged[i] = x
				hostile(t, damaged, Options{SplitRows: 2})
			}
			hostile(t, b[:i], Options{})
		}
	}
}

func TestDamagedBytesOfRealFilesDoNotMakeTheDecoderPanic(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	dir := conformance.Dir(t)
	for k, e := range files(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.Path)))
		must(t, err)
		if len(b) > 20_000 || len(b) == 0 {
			continue
		}
		each := 10
		if *everyDamage {
			each = 40
		}
		for i := range each {
			damaged := bytes.Clone(b)
			damaged[(i*7919+k)%len(b)] ^= byte(1 << (i % 8))
			hostile(t, damaged, Options{SplitRows: 100})
		}
	}
}

func TestAHostileFooterIsRefusedWithoutTheMemoryItAsksFor(t *testing.T) {
	b := append([]byte("PAR1"), bytes.Repeat([]byte{0xff}, 64)...)
	b = binary.LittleEndian.AppendUint32(b, math32)
	b = append(b, "PAR1"...)
	if _, err := Open(bytes.NewReader(b), int64(len(b)), "x.parquet", Options{}); err == nil {
		t.Error("a footer of 4 GiB in a file of 76 bytes was not noticed")
	}
	hostile(t, b, Options{})
}

const math32 = 1<<32 - 1
