package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/pierrec/lz4/v4"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

var everyDamage = flag.Bool("every-damage", false, "damage each byte in five ways, not in one of them in turn")

var errEnough = errors.New("enough")

// allocated is the total number of bytes allocated so far. Unlike runtime.ReadMemStats it does not stop the world,
// which would take most of the time with thousands of damaged files.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// hostile reads an untrusted file, up to some rows, and fails if that takes much time or memory or the decoder panics,
// even if Parse would hide the panic.
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
			conformance.MustTrue(t, err != nil || n == s.Rows, "short split: %d rows of %d", n, s.Rows)
			if err != nil {
				break
			}
		}
	}
	spent := allocated() - before
	conformance.MustTrue(t, err == nil || !strings.Contains(err.Error(), "x.parquet: damaged") &&
		!strings.Contains(err.Error(), "damaged page"), "panic: %v", err)
	took := time.Since(start)
	conformance.MustTrue(t, took <= 2*time.Minute, "took %v: %v", took, err)
	conformance.MustTrue(t, spent <= 512<<20+uint64(len(b))*2000, "took %d bytes of memory: %v", spent, err)
}

func seeds(t testing.TB) [][]byte {
	s := "text"
	var b, c, d bytes.Buffer
	rows := []shapes{{ID: 1, List: []int64{1, 2}, Bare: []string{"x"}, Struct: &inner{B: &s},
		Map: map[string]float64{"k": 1}, Pairs: map[int32]bool{1: true}}, {ID: 2}, {ID: 3, Deep: [][]inner{{{A: 1}}}}}
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

func TestDamagedBytesNeitherPanicNorRunAway(t *testing.T) {
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
		b := conformance.Read(t, dir, e.Path)
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

func TestHostileFooterIsRefusedBeforeAllocating(t *testing.T) {
	b := append([]byte("PAR1"), bytes.Repeat([]byte{0xff}, 64)...)
	b = binary.LittleEndian.AppendUint32(b, 1<<32-1)
	b = append(b, "PAR1"...)
	conformance.Refused(t, conformance.ErrorOf(Open(bytes.NewReader(b), int64(len(b)), "x.parquet", Options{})),
		"", "4 GiB")
	hostile(t, b, Options{})
}

// lz4Block compresses b to one bare block.
func lz4Block(t *testing.T, b []byte) []byte {
	t.Helper()
	out := make([]byte, lz4.CompressBlockBound(len(b)))
	var c lz4.Compressor
	n, err := c.CompressBlock(b, out)
	conformance.MustTrue(t, err == nil && n != 0, "%v %v", n, err)
	return out[:n]
}

func TestAllFramingsOfDeprecatedLZ4AreRead(t *testing.T) {
	text := []byte(strings.Repeat("a page that repeats itself; ", 100))
	number := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	part := func(b []byte) []byte { c := lz4Block(t, b); return append(number(len(c)), c...) }
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	must(t, errors.Join(conformance.ErrorOf(w.Write(text)), w.Close()))
	half := len(text) / 2
	hadoop := join(number(len(text)), part(text))
	for name, packed := range map[string][]byte{
		"one block":                  lz4Block(t, text),
		"Hadoop, one part":           hadoop,
		"Hadoop, two blocks":         join(number(half), part(text[:half]), number(len(text)-half), part(text[half:])),
		"Hadoop, a block of parts":   join(number(len(text)), part(text[:half]), part(text[half:])),
		"a frame":                    frame.Bytes(),
		"Hadoop, and an empty block": join(hadoop, number(0)),
	} {
		out, err := decompress(codecLZ4, nil, packed, len(text))
		conformance.True(t, err == nil && bytes.Equal(out, text), "%s: %d bytes: %v", name, len(out), err)
		for cut := 1; cut < len(packed); cut += 7 {
			out, err := decompress(codecLZ4, nil, packed[:len(packed)-cut], len(text))
			conformance.MustTrue(t, err != nil || bytes.Equal(out, text), "%s, cut by %d: other text", name, cut)
		}
	}
	_, err := decompress(codecLZ4, nil, join(hadoop, []byte{1, 2}), len(text))
	conformance.True(t, err != nil, "bytes after the blocks are accepted")
	out, err := decompress(codecLZ4, nil, nil, 0)
	conformance.True(t, err == nil && len(out) == 0, "%v %v", out, err)
}

func TestRepeatedMapKeyRejectsRecord(t *testing.T) {
	type pair struct {
		Key   string `parquet:"key"`
		Value int32  `parquet:"value"`
	}
	pairs := func(keys ...string) (m []pair) {
		for i, k := range keys {
			m = append(m, pair{k, int32(i)})
		}
		return m
	}
	type multi struct {
		M []pair `parquet:"m,list"`
	}
	var b bytes.Buffer
	rows := []multi{{pairs("a", "b")}, {pairs("a", "b", "a")}, {pairs("x", "x")}, {nil}, {pairs("b", "a")}}
	must(t, pq.Write(&b, rows))
	f := opened(t, b.Bytes(), Options{})
	// The same levels and values read as a map: a list of pairs differs from one only in its annotation.
	m := f.roots[0]
	m.shape, m.item = shapeMap, m.fields[0]
	if m.item.fields[0].leaf == nil {
		m.item = m.item.fields[0]
		m.fields[0].fields = m.item.fields
		m.item = m.fields[0]
	}
	p := f.NewParser([]int{0})
	var got []string
	for _, s := range f.Splits() {
		must(t, p.Parse(s, func(r *record.Record) error {
			text := string(r.Fields[0].Bytes)
			if r.Bad != nil {
				text = r.Bad.Code + " " + r.Bad.Message
			}
			got = append(got, text)
			return nil
		}))
	}
	want := []string{`{"a":0,"b":1}`, table.CodeType + ` key "a" occurs twice in a map`, table.CodeType +
		` key "x" occurs twice in a map`, `{}`, `{"b":0,"a":1}`}
	conformance.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "rows")
}

func TestRepeatedFieldNameRejectsRecord(t *testing.T) {
	a, b := leafOf(physInt32, required), leafOf(physInt32, required)
	schema := []element{rootOf(1), {name: "s", repetition: required, children: 2, converted: -1, physical: -1}, a, b}
	root, _, err := buildTree(schema)
	must(t, err)
	conformance.Equal(t, root.fields[0].twice, "c", "the repeated name")
}

func TestINT96HasNoZoneAndStaysWithinDay(t *testing.T) {
	at := func(nanos uint64) []byte {
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, nanos), julianEpoch)
	}
	schema := []element{rootOf(1), leafOf(physInt96, required)}
	body := join(at(0), at(86400e9-1), at(86400e9), at(1<<64-1))
	f := handmade(t, schema, 4, 4, page(pageData, 4, encPlain, [2]int{}, body))
	p := f.NewParser([]int{0})
	bad := 0
	for _, s := range f.Splits() {
		must(t, p.Parse(s, func(r *record.Record) error {
			if r.Bad != nil {
				bad++
			} else if !r.Fields[0].Local {
				t.Error("a zone is named")
			}
			return nil
		}))
	}
	conformance.Equal(t, bad, 2, "of 4 are rejected")
}
