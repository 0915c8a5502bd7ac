package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

var wideKey = []table.KeyColumn{{Name: "id", Type: table.Integer}, {Name: "name", Type: table.String}, {Name: "raw", Type: table.Binary}}

// wideRow makes the i-th row of an
func wideRow(i int) *record.Record {
	rec := &record.Record{Fields: []record.Datum{
		{Kind: record.Integer, Int: math.MinInt64 + int64(i)}, {Kind: record.String, Bytes: []byte(fmt.Sprintf("\x00 \"<é\xff%d", i)[:5+i%3])}, {Kind: record.Binary, Bytes: bytes.Repeat([]byte{255}, i%4)},
	}}
	for _, d := range []float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(-1), 1e21, 0.1}[i%8:] {
		rec.Cells = append(rec.Cells, sourcetest.WideCell(fmt.Sprint("d", len(rec.Cells)), record.Datum{Kind: record.Double, Double: d}, int64(1000+i)))
	}
	for v := range i % 5 {
		rec.Cells = append(rec.Cells, sourcetest.WideCell("versions", sourcetest.OfAnyType(i+v), int64(5000-v)))
	}
	if i%3 == 0 {
		rec.Cells = append(rec.Cells, sourcetest.WideCell("列\U0010ffff", record.Datum{Kind: record.String, Bytes: []byte{}}, 1), sourcetest.WideCell("b", record.Datum{Kind: record.Binary, Bytes: []byte{}}, 2),
			sourcetest.WideCell("no text", record.Datum{Kind: record.String, Bytes: []byte("\xff\xfe")}, 2))
	}
	return rec
}

// written makes an archive of so many rows.
func written(t *testing.T, rows int) *Manifest {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a")
	w, err := Open(dir, false)
	if err == nil {
		err = w.Begin(Subject{Table: "t", Key: wideKey, Ranges: []string{"t"}})
	}
	must(t, err)
	var all []*record.Record
	for i := range rows {
		all = append(all, wideRow(i))
	}
	writePart(t, w, 0, nil, all...)
	_, err = w.Finish(Manifest{})
	must(t, errors.Join(err, w.Close()))
	m, err := Read(dir)
	must(t, err)
	return m
}

func TestAPartKeepsTheContractOfSources(t *testing.T) {
	m := written(t, 300)
	open := func() source.Source {
		parts, err := New(m).Open(context.Background(), nil)
		must(t, err)
		parts[0].SetSplitBytes(5000)
		return parts[0]
	}
	sourcetest.Check(t, open)
	s, i := open(), 0
	defer s.Close()
	for sp, err := range source.Splits(s) {
		must(t, err)
		_, _, err = s.NewParser(nil).Parse(sp, func(rec *record.Record) {
			want := wideRow(i)
			conformance.Equal(t, fmt.Sprint(rec.Bad, rec.Fields, rec.Cells), fmt.Sprint(want.Bad, want.Fields, want.Cells), "row %d", i)
			i++
		})
		must(t, err)
	}
	conformance.Equal(t, i, 300, "rows")
}

func TestAPartThatChangesWhileItIsReadFailsInPlaceOfItsEnd(t *testing.T) {
	m := written(t, 50)
	parts, err := New(m).Open(context.Background(), nil)
	must(t, err)
	other := written(t, 51)
	must(t, os.Rename(other.Path(&other.Parts[0]), m.Path(&m.Parts[0])))
	defer parts[0].Close()
	for err == nil {
		_, err = parts[0].Next()
	}
	if damaged := new(DamagedError); !errors.As(err, &damaged) {
		t.Errorf("%v, want that it was changed", err)
	}
}
