package arrow

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

func TestMain(m *testing.M) { conformance.Main(m) }

// shown returns a datum as testdata/make.py would write it.
func shown(d *record.Datum) [2]any {
	number := strconv.FormatInt(d.Int, 10)
	switch d.Kind {
	case record.Null:
		return [2]any{"null", ""}
	case record.Boolean:
		return [2]any{"boolean", strconv.FormatBool(d.Int == 1)}
	case record.Integer:
		return [2]any{"integer", number}
	case record.Unsigned:
		return [2]any{"unsigned", strconv.FormatUint(uint64(d.Int), 10)}
	case record.Double:
		return [2]any{"double", fmt.Sprintf("%016x", math.Float64bits(d.Double))}
	case record.Decimal:
		v := new(big.Int).SetBytes(d.Bytes)
		if d.Bytes[0]&0x80 != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d.Bytes))))
		}
		return [2]any{"decimal", fmt.Sprintf("%v/%d", v, d.Scale)}
	case record.Date:
		return [2]any{"date", number}
	case record.TimeOfDay:
		return [2]any{"time", fmt.Sprintf("%d/%d", d.Int, d.Unit)}
	case record.Timestamp:
		zone := "utc"
		if d.Local {
			zone = "local"
		}
		return [2]any{"timestamp", fmt.Sprintf("%d/%d/%s", d.Int, d.Unit, zone)}
	case record.String:
		return [2]any{"string", string(d.Bytes)}
	case record.Binary:
		return [2]any{"binary", hex.EncodeToString(d.Bytes)}
	case record.JSON:
		var v any
		if err := json.Unmarshal(d.Bytes, &v); err != nil {
			return [2]any{"json", fmt.Sprintf("%q: %v", d.Bytes, err)}
		}
		return [2]any{"json", v}
	}
	return [2]any{fmt.Sprintf("kind %d", d.Kind), ""}
}

// contents holds the rows of a file, with values as returned by shown.
type contents []map[string][2]any

func (c *contents) add(names []string) func(*record.Record) error {
	return func(rec *record.Record) error {
		if rec.Bad != nil {
			return errors.New(rec.Bad.Message)
		}
		row := map[string][2]any{}
		for i, n := range names {
			row[n] = shown(&rec.Fields[i])
		}
		*c = append(*c, row)
		return nil
	}
}

func wanted(t *testing.T, file string) (all contents) {
	t.Helper()
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	name, _, _ = strings.Cut(name, "_")
	f := conformance.Try(os.Open(filepath.Join("testdata", name+".want"))).Must(t)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row map[string][2]any
		conformance.Must(t, json.Unmarshal(lines.Bytes(), &row))
		all = append(all, row)
	}
	return all
}

func every[T any](of []T) []int {
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	return all
}

func readSplits(b []byte, o Options) (c contents, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), "x.arrow", o)
	if err != nil {
		return nil, err
	}
	p := f.NewParser(every(f.Columns()))
	defer p.Close()
	for _, s := range f.Splits() {
		before := len(c)
		if err := p.Parse(s, c.add(f.Columns())); err != nil {
			return c, err
		}
		if int64(len(c)-before) != s.Rows {
			return c, fmt.Errorf("split %d gave %d rows, not %d", s.Number, len(c)-before, s.Rows)
		}
	}
	if int64(len(c)) != f.Rows() {
		return c, fmt.Errorf("%d rows of %d", len(c), f.Rows())
	}
	return c, nil
}

func readInOrder(b []byte, o Options) (c contents, err error) {
	s, err := NewStream(bytes.NewReader(b), "x.arrows", o)
	if err != nil {
		return nil, err
	}
	p := s.NewParser(every(s.Columns()))
	defer p.Close()
	for {
		batch, err := s.Next()
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		if batch.First() != int64(len(c)) {
			return c, fmt.Errorf("a batch begins at %d, not at %d", batch.First(), len(c))
		}
		for _, split := range batch.Splits() {
			if err := p.ParseBatch(batch, split, c.add(s.Columns())); err != nil {
				return c, err
			}
		}
	}
}

func testFiles(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*.arrow*")
	conformance.MustTrue(t, err == nil && len(files) >= 20, "%d files: %v", len(files), err)
	return files
}

func same(t *testing.T, have, want contents) {
	t.Helper()
	conformance.MustEqual(t, len(have), len(want), "rows")
	for i := range want {
		for name, value := range want[i] {
			conformance.MustTrue(t, reflect.DeepEqual(have[i][name], value), "row %d, %s: %v", i, name, have[i][name])
		}
	}
}

func TestValuesAgreeWithWriters(t *testing.T) {
	for _, file := range testFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, want := conformance.Read(t, "", file), wanted(t, file)
			for _, rows := range []int64{0, 1, 3, 100} {
				have, err := readSplits(b, Options{SplitRows: rows})
				if replaced := strings.Contains(file, "replaced"); replaced != errors.Is(err, ErrReplaced) || err != nil &&
					!replaced {
					t.Fatal(err)
				} else if !replaced {
					same(t, have, want)
				}
				have, err = readInOrder(b, Options{SplitRows: rows})
				if strings.Contains(file, "polars_") || strings.HasSuffix(file, "legacy.arrow") { // no end mark
					conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "save it to a file first"), "%v", err)
					continue
				}
				conformance.Must(t, err)
				same(t, have, want)
			}
		})
	}
}

func TestSchemaVersionIsUsedIfFooterHasNone(t *testing.T) {
	for _, name := range []string{"legacy.arrow", "version4.arrow", "many.arrow"} {
		b := conformance.Read(t, "", "testdata/"+name)
		end := len(b) - 4 - len(Magic)
		start := end - int(binary.LittleEndian.Uint32(b[end:]))
		binary.LittleEndian.PutUint16(b[start+newFlat(b[start:end]).root().fields+4:], 0) // removes the version
		conformance.MustEqual(t, newFlat(b[start:end]).root().number(0, 2, 0), 0, "%s: version of the footer", name)
		same(t, conformance.Try(readSplits(b, Options{})).Must(t), wanted(t, name))
	}
}

func TestFlattenedStructFieldsAreColumns(t *testing.T) {
	b := conformance.Read(t, "", "testdata/many.arrow")
	f := conformance.Try(Open(bytes.NewReader(b), int64(len(b)), "x", Options{Flatten: true})).Must(t)
	names := f.Columns()
	want := []string{"id", "word", "code", "list", "flag", "runs", "at.a", "at.b"}
	conformance.MustTrue(t, slices.Equal(names, want), "columns %q", names)
	for _, used := range [][]int{{6}, {7}, {0, 7}, {6, 7}} {
		p := f.NewParser(used)
		i := 0
		for _, s := range f.Splits() {
			conformance.Must(t, p.Parse(s, func(rec *record.Record) error {
				for _, k := range used {
					d := &rec.Fields[k]
					conformance.MustTrue(t, k < 6 || (d.Kind == record.Null) == (i%6 == 0), "row %d, column %d: %v", i, k, shown(d))
					conformance.MustTrue(t, (k != 6 || i%6 == 0 || d.Int == int64(i)) &&
						(k != 7 || i%6 == 0 || string(d.Bytes) == fmt.Sprintf("view of row number %d", i)),
						"row %d, column %d: %v", i, k, shown(d))
				}
				i++
				return nil
			}))
		}
		conformance.MustEqual(t, i, 400, "rows")
	}
}

func TestRemoteBatchTakesTwoRequests(t *testing.T) {
	b := conformance.Read(t, "", "testdata/many.arrow")
	far := &counter{ReaderAt: bytes.NewReader(b)}
	f := conformance.Try(Open(far, int64(len(b)), "x", Options{})).Must(t)
	conformance.True(t, far.reads <= 3+len(f.batches)+len(f.described), "%d reads, %d batches", far.reads, len(f.batches))
	p := f.NewParser(every(f.Columns()))
	conformance.Must(t, conformance.ErrorOf(f.dictionaries()))
	far.reads = 0
	for _, s := range f.Splits() {
		conformance.Must(t, p.Parse(s, func(*record.Record) error { return nil }))
	}
	conformance.True(t, far.reads <= 2*len(f.batches), "%d reads of %d batches", far.reads, len(f.batches))
}

type counter struct {
	io.ReaderAt
	reads int
}

func (c *counter) ReadAt(b []byte, at int64) (int, error) {
	c.reads++
	return c.ReaderAt.ReadAt(b, at)
}

func TestOversizedBatchesAreRefused(t *testing.T) {
	b := conformance.Read(t, "", "testdata/many_zstd.arrow")
	f := conformance.Try(Open(bytes.NewReader(b), int64(len(b)), "x", Options{})).Must(t)
	p := f.NewParser(every(f.Columns()))
	p.LimitMemory(1000)
	parse := func() error { return p.Parse(f.Splits()[0], func(*record.Record) error { return nil }) }
	err := parse()
	conformance.True(t, errors.Is(err, source.ErrMemory) && strings.Contains(err.Error(), "--memory"), "1,000: %v", err)
	p.LimitMemory(1 << 20)
	conformance.Must(t, parse())
	conformance.Refused(t, conformance.ErrorOf(readSplits(b, Options{MaxDictionary: 10})), "dictionaries take", "10 bytes")
	conformance.Refused(t, conformance.ErrorOf(readSplits(b, Options{MaxMetadata: 100})), "the limit is 100", "metadata")
	stream := conformance.Read(t, "", "testdata/many_zstd.arrows")
	s := conformance.Try(NewStream(bytes.NewReader(stream), "x", Options{MaxBody: 1000})).Must(t)
	for range 3 { // after the sample, the load fails in the same way
		conformance.Refused(t, conformance.ErrorOf(s.Next()), "memory allows", "the body of a stream")
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	for _, name := range []string{"version4.arrow", "version4.arrows", "legacy.arrows", "deltas.arrow"} {
		b := conformance.Read(t, "", "testdata/"+name)
		for n := range b {
			_, err := readSplits(b[:n], Options{})
			conformance.MustTrue(t, err != nil, "%s: the first %d of %d bytes were read without an error", name, n, len(b))
			_, err = readInOrder(b[:n], Options{})
			conformance.MustTrue(t, err != nil, "%s: the first %d of %d bytes were read in order", name, n, len(b))
		}
		for _, more := range []string{"x", string(b)} {
			_, err1 := readSplits([]byte(string(b)+more), Options{})
			_, err2 := readInOrder([]byte(string(b)+more), Options{})
			conformance.True(t, err2 != nil && (err1 != nil || more != "x"), "%s: %q, %v, %v", name, more, err1, err2)
		}
	}
}

var errEnough = errors.New("enough")

// allocated returns the total number of bytes allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// small has limits for a process with little memory.
var small = Options{MaxMetadata: 1 << 20, MaxDictionary: 4 << 20, MaxBody: 4 << 20, SplitRows: 50}

// hostile reads rows of untrusted bytes. It fails if reading takes much memory or the decoder
// panics, even if Parse would recover the panic.
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

const enough = 200 // number of rows that hostile reads

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
		if b := conformance.Read(f, "", file); len(b) < 30_000 {
			f.Add(b, false)
			f.Add(b, true)
		}
	}
	f.Fuzz(hostile)
}

func TestDamagedFilesNeitherPanicNorExhaustMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for _, file := range testFiles(t) {
		b := conformance.Read(t, "", file)
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

// schemaOf returns the metadata of a stream's first message and its offset.
func schemaOf(t *testing.T, b []byte) (*flat, int) {
	metadata, taken, err := nextMetadata(bytes.NewReader(b), 1<<20)
	conformance.Must(t, err)
	return newFlat(metadata), int(taken) - len(metadata)
}

// ownDescendant makes a stream whose schema has a list that contains itself: the offset to it overflows 32 bits.
func ownDescendant(t *testing.T) []byte {
	b := bytes.Clone(conformance.Read(t, "", filepath.Join("testdata", "nested.arrows")))
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
	if to := os.Getenv("TSIMPORT_KEEP_HOSTILE"); to != "" { // for tests of other readers
		conformance.Must(t, os.WriteFile(to, b, 0o644))
	}
	conformance.Is(t, conformance.ErrorOf(NewStream(bytes.NewReader(b), "x", Options{})), errMetadata, "a stream")
	conformance.Is(t, conformance.ErrorOf(Open(bytes.NewReader(b), int64(len(b)), "x", Options{})), errMetadata, "a file")
}

func TestSharedMetadataTablesAreBounded(t *testing.T) {
	// Each of 40 tables lists the next table twice: 2^40 fields in about 1 KB.
	var b []byte
	put := func(v int) { b = binary.LittleEndian.AppendUint32(b, uint32(v)) }
	put(4)
	for range 40 {
		put(-(4 + 4)) // the list of the table's fields is next
		put(20)
		b = append(b, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0) // field 5 is at offset 4
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
		defer damaged(&err)
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
		b := conformance.Read(t, "", "testdata/many_"+codec+".arrow")
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
	b[571] ^= 0xff // the flag of a delta dictionary
	anywhere, inOrder := hostileFile(t, b, small), hostileStream(t, b, small)
	for name, err := range map[string]error{"anywhere": anywhere, "in order": inOrder} {
		conformance.Is(t, err, errMetadata, "read %s", name)
	}
}
