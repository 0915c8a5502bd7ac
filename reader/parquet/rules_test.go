package parquet

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/pierrec/lz4/v4"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// lz4Block compresses b to one bare block.
func lz4Block(t *testing.T, b []byte) []byte {
	t.Helper()
	out := make([]byte, lz4.CompressBlockBound(len(b)))
	var c lz4.Compressor
	n, err := c.CompressBlock(b, out)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return out[:n]
}

func TestTheDeprecatedLZ4CodecIsReadHoweverItIsFramed(t *testing.T) {
	text := []byte(strings.Repeat("a page that repeats itself; ", 100))
	number := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	part := func(b []byte) []byte { c := lz4Block(t, b); return append(number(len(c)), c...) }
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
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
		if err != nil || !bytes.Equal(out, text) {
			t.Errorf("%s: %d bytes: %v", name, len(out), err)
		}
		for cut := 1; cut < len(packed); cut += 7 {
			if out, err := decompress(codecLZ4, nil, packed[:len(packed)-cut], len(text)); err == nil && !bytes.Equal(out, text) {
				t.Fatalf("%s without its last %d bytes gives other text", name, cut)
			}
		}
	}
	if _, err := decompress(codecLZ4, nil, append(hadoop[:len(hadoop):len(hadoop)], 1, 2), len(text)); err == nil {
		t.Error("bytes behind the blocks are accepted")
	}
	if out, err := decompress(codecLZ4, nil, nil, 0); err != nil || len(out) > 0 {
		t.Error(out, err)
	}
}

// badOf writes rows, reads them back and returns the reason of each bad record, and the first field of each record as JSON.
func badOf[T any](t *testing.T, rows []T) (reasons []string, first []string) {
	t.Helper()
	var b bytes.Buffer
	must(t, pq.Write(&b, rows))
	if _, _, err := loadAll(b.Bytes(), "x.parquet", Options{}, func(r *record.Record) {
		why := ""
		if r.Bad != nil {
			why = r.Bad.Code + " " + r.Bad.Message
		}
		reasons, first = append(reasons, why), append(first, string(r.Fields[0].Bytes))
	}); err != nil {
		t.Fatal(err)
	}
	return reasons, first
}

func TestNaNAndInfinityInsideNestedValuesAreTexts(t *testing.T) {
	type holds struct {
		List []float64 `parquet:"list,list"`
	}
	got, first := badOf(t, []holds{{[]float64{1, math.NaN()}}, {[]float64{math.Inf(-1), math.Inf(1)}}, {[]float64{2}}})
	for i, want := range []string{`[1,"NaN"]`, `["-Infinity","Infinity"]`, "[2]"} {
		if got[i] != "" || first[i] != want {
			t.Errorf("record %d: %s, want %s (%s)", i, first[i], want, got[i])
		}
	}
}

func TestAKeyThatIsTwiceInAMapRejectsTheRecord(t *testing.T) {
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
	// The same levels and values read as a map: a list of pairs differs from one in its annotation only.
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
	want := []string{`{"a":0,"b":1}`, table.CodeType + ` key "a" occurs twice in a map`, table.CodeType + ` key "x" occurs twice in a map`, `{}`, `{"b":0,"a":1}`}
	conformance.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "rows")
}

func TestTwoFieldsOfOneNameRejectTheRecord(t *testing.T) {
	a, b := leafOf(physInt32, required), leafOf(physInt32, required)
	schema := []element{rootOf(1), {name: "s", repetition: required, children: 2, converted: -1, physical: -1}, a, b}
	root, _, err := buildTree(schema)
	if err != nil || root.fields[0].twice != "c" {
		t.Error(root.fields[0].twice, err)
	}
}

func TestINT96NamesNoZoneAndMustBeWithinItsDay(t *testing.T) {
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
