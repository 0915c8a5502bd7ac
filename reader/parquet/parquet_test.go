package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/pierrec/lz4/v4"
)

// write returns a file with rows, whose values are in the order of the leaves.
func write(t testing.TB, schema *pq.Schema, rows []pq.Row, options ...pq.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewWriter(&b, append(options, schema)...)
	must(t, conformance.ErrorOf(w.WriteRows(rows)))
	must(t, w.Close())
	return b.Bytes()
}

// opened opens a file that is in memory.
func opened(t testing.TB, b []byte, o Options) *File {
	t.Helper()
	return conformance.Try(Open(bytes.NewReader(b), int64(len(b)), "x.parquet", o)).Must(t)
}

// one writes a value to a required column and reads it back.
func one(t *testing.T, node pq.Node, v pq.Value) (record.Datum, *table.Reason) {
	t.Helper()
	b := write(t, pq.NewSchema("s", pq.Group{"c": node}), []pq.Row{{v.Level(0, 0, 0)}})
	var d record.Datum
	var bad *table.Reason
	rows, _, err := loadAll(b, "x.parquet", Options{}, func(r *record.Record) {
		d, bad = r.Fields[0], r.Bad
		d.Bytes = bytes.Clone(d.Bytes)
	})
	conformance.MustTrue(t, err == nil && rows == 1, "%d rows: %v", rows, err)
	return d, bad
}

func TestEveryTypeKeepsKindAndValue(t *testing.T) {
	uuid := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255}
	int96 := func(day uint32, nanos uint64) pq.Value {
		return pq.Int96Value(deprecated.Int96{uint32(nanos), uint32(nanos >> 32), day})
	}
	type datum = record.Datum
	leaf, bin, fixed, long := pq.Leaf, pq.FixedLenByteArrayType, pq.FixedLenByteArrayValue, pq.Int64Value
	for name, c := range map[string]struct {
		node pq.Node
		v    pq.Value
		want record.Datum
	}{
		"boolean": {leaf(pq.BooleanType), pq.BooleanValue(true), datum{Kind: record.Boolean, Int: 1}},
		"int32":   {leaf(pq.Int32Type), pq.Int32Value(-5), datum{Kind: record.Integer, Int: -5}},
		"int64":   {leaf(pq.Int64Type), long(math.MinInt64), datum{Kind: record.Integer, Int: math.MinInt64}},
		"int8":    {pq.Int(8), pq.Int32Value(-128), datum{Kind: record.Integer, Int: -128}},
		"uint32":  {pq.Uint(32), pq.Int32Value(-1), datum{Kind: record.Integer, Int: math.MaxUint32}},
		"uint64":  {pq.Uint(64), long(-1), datum{Kind: record.Unsigned, Int: -1}},
		"float":   {leaf(pq.FloatType), pq.FloatValue(0.1), datum{Kind: record.Double, Double: float64(float32(0.1))}},
		"double":  {leaf(pq.DoubleType), pq.DoubleValue(0.1), datum{Kind: record.Double, Double: 0.1}},
		"string":  {pq.String(), pq.ByteArrayValue([]byte("é\xff")), datum{Kind: record.String, Bytes: []byte("é\xff")}},
		"enum":    {pq.Enum(), pq.ByteArrayValue([]byte("A")), datum{Kind: record.String, Bytes: []byte("A")}},
		"json":    {pq.JSON(), pq.ByteArrayValue([]byte("{}")), datum{Kind: record.String, Bytes: []byte("{}")}},
		"bson":    {pq.BSON(), pq.ByteArrayValue([]byte{0}), datum{Kind: record.Binary, Bytes: []byte{0}}},
		"bytes":   {leaf(pq.ByteArrayType), pq.ByteArrayValue([]byte{}), datum{Kind: record.Binary, Bytes: []byte{}}},
		"fixed":   {leaf(bin(3)), fixed([]byte("abc")), datum{Kind: record.Binary, Bytes: []byte("abc")}},
		"uuid": {pq.UUID(), fixed(uuid), datum{Kind: record.String,
			Bytes: []byte("00010203-0405-0607-0809-0a0b0c0d0eff")}},
		"decimal32": {pq.Decimal(2, 9, pq.Int32Type), pq.Int32Value(-1),
			datum{Kind: record.Decimal, Scale: 2, Bytes: bytes.Repeat([]byte{255}, 8)}},
		"decimal64": {pq.Decimal(3, 18, pq.Int64Type), long(258),
			datum{Kind: record.Decimal, Scale: 3, Bytes: []byte{0, 0, 0, 0, 0, 0, 1, 2}}},
		"decimal": {pq.Decimal(4, 20, bin(9)), fixed([]byte("123456789")),
			datum{Kind: record.Decimal, Scale: 4, Bytes: []byte("123456789")}},
		"date":     {pq.Date(), pq.Int32Value(-1), datum{Kind: record.Date, Int: -1}},
		"time ms":  {pq.Time(pq.Millisecond), pq.Int32Value(7), datum{Kind: record.TimeOfDay, Int: 7, Unit: record.Millis}},
		"time ns":  {pq.Time(pq.Nanosecond), long(7), datum{Kind: record.TimeOfDay, Int: 7, Unit: record.Nanos}},
		"stamp us": {pq.Timestamp(pq.Microsecond), long(-7), datum{Kind: record.Timestamp, Int: -7, Unit: record.Micros}},
		"local ms": {pq.TimestampAdjusted(pq.Millisecond, false), long(7),
			datum{Kind: record.Timestamp, Int: 7, Unit: record.Millis, Local: true}},
		"int96": {leaf(pq.Int96Type), int96(julianEpoch+1, 5), datum{Kind: record.Timestamp, Int: 86400e9 + 5,
			Unit: record.Nanos, Local: true}},
		"int96 past": {leaf(pq.Int96Type), int96(julianEpoch-1, 5), datum{Kind: record.Timestamp, Int: -86400e9 + 5,
			Unit: record.Nanos, Local: true}},
		"int96 far": {leaf(pq.Int96Type), int96(julianEpoch+2932896, 1000),
			datum{Kind: record.Timestamp, Int: 253402214400e6 + 1, Unit: record.Micros, Local: true}},
	} {
		t.Run(name, func(t *testing.T) {
			d, bad := one(t, c.node, c.v)
			diff := cmp.Diff(c.want, d)
			conformance.True(t, diff == "" && bad == nil, "%v %v", bad, diff)
		})
	}
	_, bad := one(t, leaf(pq.Int96Type), int96(julianEpoch+2932896, 1001))
	conformance.True(t, bad != nil && bad.Code == table.CodeRange, "INT96 that fits neither unit: %v", bad)
}

func TestHalfFloatsWidenExactly(t *testing.T) {
	for h, want := range map[uint16]float64{0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: math.Ldexp(1, -24),
		0x3555: 0.333251953125, 0xfc00: math.Inf(-1)} {
		conformance.Equal(t, jsontext.Half(h), want, "%04x", h)
	}
	conformance.Equal(t, math.IsNaN(jsontext.Half(0x7e01)), true, "NaN is not NaN")
}

type inner struct {
	A int64   `parquet:"a"`
	B *string `parquet:"b,optional"`
}

type stamp struct {
	At time.Time `parquet:"at,timestamp(microsecond)"`
}

type shapes struct {
	ID     int64              `parquet:"id"`
	List   []int64            `parquet:"list,optional,list"`
	Bare   []string           `parquet:"bare"`
	Struct *inner             `parquet:"struct,optional"`
	Map    map[string]float64 `parquet:"map,optional"`
	Pairs  map[int32]bool     `parquet:"pairs,optional"`
	Deep   [][]inner          `parquet:"deep,list"`
	When   []stamp            `parquet:"when"`
	Raw    [][]byte           `parquet:"raw"`
}

func TestNestedValuesBecomeJSONAndEmptyIsNotNull(t *testing.T) {
	s := `q"\` + "\n\x01é"
	rows := []shapes{
		{ID: math.MaxInt64, List: []int64{1, math.MaxInt64}, Bare: []string{"x", ""},
			Struct: &inner{A: 9007199254740993, B: &s}, Map: map[string]float64{"k": 1e300}, Pairs: map[int32]bool{-1: true},
			Deep: [][]inner{{{A: 1}, {A: 2}}, {{A: 3}}}, When: []stamp{{time.Unix(1, 5000).UTC()}}, Raw: [][]byte{{0xff}}},
		{ID: 2, List: []int64{}, Struct: &inner{}},
		{ID: 3},
	}
	var b bytes.Buffer
	must(t, pq.Write(&b, rows))
	var got []string
	_, _, err := loadAll(b.Bytes(), "x.parquet", Options{}, func(r *record.Record) {
		var line []string
		for i := range r.Fields {
			d := &r.Fields[i]
			switch d.Kind {
			case record.Integer:
				line = append(line, fmt.Sprint(d.Int))
			case record.JSON:
				line = append(line, string(d.Bytes))
			case record.Null:
				line = append(line, "-")
			}
		}
		got = append(got, strings.Join(line, " "))
	})
	must(t, err)
	want := []string{
		`9223372036854775807 [1,9223372036854775807] ["x",""] {"a":9007199254740993,"b":"q\"\\\n\u0001é"} {"k":1e+300} ` +
			`[{"key":-1,"value":true}] [[{"a":1,"b":null},{"a":2,"b":null}],[{"a":3,"b":null}]] [{"at":"1970-01-01T00:00:01.000005Z"}] ["/w=="]`,
		`2 [] [] {"a":0,"b":null} - - [] [] []`,
		`3 - [] - - - [] [] []`,
	}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
	f := opened(t, b.Bytes(), Options{Flatten: true})
	conformance.Equal(t, strings.Join(f.Columns(), " "), "id list bare struct.a struct.b map pairs deep when raw", "flat")
}

func TestFlattenedNullStructHasNoEmptyLists(t *testing.T) {
	type lists struct {
		Bare []string         `parquet:"bare"`
		List []int64          `parquet:"list,list"`
		Map  map[string]int64 `parquet:"map"`
	}
	type row struct {
		S *lists `parquet:"s,optional"`
	}
	var b bytes.Buffer
	must(t, pq.Write(&b, []row{{}, {&lists{}}}))
	var got []string
	_, _, err := loadAll(b.Bytes(), "x.parquet", Options{Flatten: true}, func(r *record.Record) {
		for i := range r.Fields {
			got = append(got, string(r.Fields[i].Bytes))
		}
	})
	conformance.True(t, err == nil && strings.Join(got, " ") == "   [] [] {}", "%q, %v", got, err)
}

func TestNestedInvalidUTF8RejectsRecord(t *testing.T) {
	var b bytes.Buffer
	must(t, pq.Write(&b, []shapes{{Bare: []string{"\xff"}}, {Bare: []string{"ok"}}}))
	var codes []string
	rows, bad, err := loadAll(b.Bytes(), "x.parquet", Options{}, func(r *record.Record) {
		if r.Bad != nil {
			codes = append(codes, r.Bad.Code)
		}
	})
	conformance.True(t, err == nil && rows == 2 && bad == 1 && codes[0] == table.CodeUTF8, "%d, %v: %v", rows, codes, err)
}

// random returns a file with all encodings that the writer has, several row groups and small pages.
func random(t testing.TB, seed uint64, version int) []byte {
	type row struct {
		Plain  int64    `parquet:"plain,plain"`
		Dict   string   `parquet:"dict,dict"`
		Delta  int32    `parquet:"delta,delta"`
		Length string   `parquet:"length,delta"`
		Bytes  string   `parquet:"bytes,delta,zstd"`
		Split  float64  `parquet:"split,split,gzip"`
		Maybe  *int64   `parquet:"maybe,optional,snappy"`
		Flag   bool     `parquet:"flag,brotli"`
		List   []int64  `parquet:"list,list,lz4"`
		Words  []string `parquet:"words,dict"`
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	var rows []row
	for i := range 900 {
		r := row{Plain: int64(i), Dict: fmt.Sprint(rnd.IntN(20)), Delta: int32(rnd.Uint32()),
			Length: strings.Repeat("x", rnd.IntN(9)),
			Bytes:  fmt.Sprintf("prefix%06d", i), Split: rnd.Float64(), Flag: rnd.IntN(2) == 0}
		if rnd.IntN(3) > 0 {
			r.Maybe = new(rnd.Int64())
		}
		for range rnd.IntN(4) {
			r.List = append(r.List, rnd.Int64N(100))
			r.Words = append(r.Words, fmt.Sprint(rnd.IntN(5)))
		}
		rows = append(rows, r)
	}
	var b bytes.Buffer
	must(t, pq.Write(&b, rows, pq.MaxRowsPerRowGroup(330), pq.PageBufferSize(700), pq.DataPageVersion(version)))
	return b.Bytes()
}

func lines(t *testing.T, b []byte, o Options, order func([]Split)) []string {
	t.Helper()
	f := opened(t, b, o)
	all := make([]string, f.Rows())
	splits := f.Splits()
	if order != nil {
		order(splits)
	}
	p := f.NewParser(every(f))
	for _, s := range splits {
		at := s.FirstRow
		must(t, p.Parse(s, func(r *record.Record) error {
			all[at] = fmt.Sprintf("%v %v", r.Fields, r.Bad)
			at++
			return nil
		}))
	}
	return all
}

func TestRowsDoNotDependOnSplits(t *testing.T) {
	for seed := range uint64(2) {
		b := random(t, seed, 2-int(seed%2))
		want := lines(t, b, Options{}, nil)
		for _, n := range []int64{1, 7, 100, 329, 330, 331} {
			conformance.MustEqual(t, cmp.Diff(want, lines(t, b, Options{SplitRows: n}, nil)), "", "seed %d, split %d", seed, n)
			if n == 1 {
				continue // shuffling single rows takes too long
			}
			shuffled := lines(t, b, Options{SplitRows: max(n, 50)}, func(s []Split) {
				rand.New(rand.NewPCG(seed, 2)).Shuffle(len(s), func(i, k int) { s[i], s[k] = s[k], s[i] })
			})
			conformance.MustEqual(t, cmp.Diff(want, shuffled), "", "seed %d, splits of %d shuffled", seed, n)
		}
		n, theirs, ours := compare(b, "x.parquet")
		conformance.MustTrue(t, n != 0 && theirs == nil && ours == nil, "%v %v %v", n, theirs, ours)
	}
}

// counting counts the bytes read.
type counting struct {
	*bytes.Reader
	read int64
}

func (c *counting) ReadAt(b []byte, off int64) (int, error) {
	c.read += int64(len(b))
	return c.Reader.ReadAt(b, off)
}

func TestUnusedColumnsAreNotRead(t *testing.T) {
	b := random(t, 1, 2)
	r := &counting{Reader: bytes.NewReader(b)}
	f := conformance.Try(Open(r, int64(len(b)), "x.parquet", Options{})).Must(t)
	r.read = 0
	p := f.NewParser([]int{0})
	for _, s := range f.Splits() {
		must(t, p.Parse(s, func(r *record.Record) error {
			if r.Fields[0].Kind != record.Integer || r.Fields[1].Kind != record.Null {
				return fmt.Errorf("record %v", r.Fields)
			}
			return nil
		}))
	}
	conformance.True(t, r.read <= int64(len(b))/4, "one of ten columns took %d of %d bytes", r.read, len(b))
}

func TestCallbackErrorIsReturnedAndParserContinues(t *testing.T) {
	f := opened(t, random(t, 1, 1), Options{})
	p, stop, n := f.NewParser(every(f)), errors.New("stop"), 0
	conformance.Equal(t, p.Parse(f.Splits()[0], func(*record.Record) error { return stop }), stop, "parse")
	err := p.Parse(f.Splits()[0], func(*record.Record) error { n++; return nil })
	conformance.True(t, err == nil && n == 330, "%v %v", n, err)
}

func TestLargeFooterIsRefused(t *testing.T) {
	var b bytes.Buffer
	must(t, pq.NewGenericWriter[struct{ A int64 }](&b).Close())
	_, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), "t", Options{MaxFooter: 10})
	conformance.Refused(t, err, "--memory", "refusal")
}

// largePage returns a file with these columns, each a page of 8 MB and 1,000 rows, which zstd makes small.
func largePage(t *testing.T, columns ...string) []byte {
	group := pq.Group{}
	for _, name := range columns {
		group[name] = pq.Optional(pq.Compressed(pq.Encoded(pq.String(), &pq.Plain), &pq.Zstd))
	}
	var b bytes.Buffer
	w := pq.NewWriter(&b, pq.NewSchema("t", group), pq.PageBufferSize(16<<20), pq.DataPageStatistics(false))
	v := pq.ByteArrayValue([]byte(strings.Repeat("v", 8_000)))
	row := make(pq.Row, len(columns))
	for i := range row {
		row[i] = v.Level(0, 1, i)
	}
	for range 1000 {
		must(t, conformance.ErrorOf(w.WriteRows([]pq.Row{row})))
	}
	must(t, w.Close())
	return b.Bytes()
}

func TestOversizedPagesAreRefusedBeforeReading(t *testing.T) {
	data := largePage(t, "a", "b")
	f := opened(t, data, Options{})
	conformance.Equal(t, f.LargePages(4<<20), true, "a page of 8 MB that is stored in little is not large")
	for _, columns := range [][]int{{0}, {1}, {0, 1}} {
		p := f.NewParser(columns)
		for limit := int64(1 << 20); limit < 32<<20; limit += 1 << 20 {
			p.Limit = limit
			early := f.CheckMemory(columns, limit, true, func() (io.ReaderAt, error) { return bytes.NewReader(data), nil })
			late := p.Parse(f.Splits()[0], func(*record.Record) error { return nil })
			p.Release()
			conformance.Equal(t, errors.Is(early, source.ErrMemory), errors.Is(late, source.ErrMemory),
				"columns %v, limit %d: refused before with %v, reading with %v", columns, limit, early, late)
		}
	}
}

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

var everyDamage = flag.Bool("every-damage", false, "damage each byte in five ways, not in one of them in turn")

var errEnough = errors.New("enough")

// allocated returns the total number of bytes allocated so far. Unlike runtime.ReadMemStats, it does not stop the
// world, which would take most of the time of tests with thousands of damaged files.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// hostile reads rows of an untrusted file. It fails if reading takes much time or memory or the decoder panics, even if
// Parse would recover the panic.
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

func TestDamagedFilesNeitherPanicNorExhaustMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // many short-lived decoders in a small heap
	for _, b := range seeds(t) {
		for i := range b {
			for way, x := range []byte{b[i] ^ 0xff, b[i] ^ 1, b[i] ^ 0x80, b[i] + 1, 0} {
				if way != i%5 && !*everyDamage { // set by make fuzz
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

func TestDamagedRealFilesDoNotPanic(t *testing.T) {
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

// lz4Block compresses b as a single raw block.
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
	// Read the same levels and values as a map, too: it differs from a list of pairs only in its annotation.
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

func TestINT96HasNoZoneAndIsRejectedBeyondDay(t *testing.T) {
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
