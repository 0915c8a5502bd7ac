package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

var key = []table.KeyColumn{{Name: "id", Type: table.Integer}, {Name: "name", Type: table.String}, {Name: "raw", Type: table.Binary}}

var must = conformance.Must

// row makes the i-th row of an archive.
func row(i int) *record.Record {
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

// write makes an archive of so many rows in each of its parts.
func write(t *testing.T, parts ...int) *archive.Manifest {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a")
	w, err := archive.Open(dir, false)
	if err == nil {
		err = w.Begin(archive.Subject{Table: "t", Key: archive.Columns(key), Ranges: []string{"t"}})
	}
	must(t, err)
	i := 0
	for n, rows := range parts {
		p, err := w.NewPart(0)
		must(t, err)
		for range rows {
			must(t, p.Row(row(i)))
			i++
		}
		next := []byte("next")
		if n == len(parts)-1 {
			next = nil
		}
		must(t, p.Commit(next))
	}
	_, err = w.Finish(archive.Manifest{})
	must(t, err)
	must(t, w.Close())
	m, err := archive.Read(dir)
	must(t, err)
	return m
}

func TestAPartKeepsTheContractOfSources(t *testing.T) {
	m := write(t, 300)
	sourcetest.Check(t, func() source.Source {
		parts, err := New(m).Open(context.Background(), nil)
		must(t, err)
		parts[0].SetSplitBytes(5000)
		return parts[0]
	})
}

func TestRowsAreReadAsTheyWereWritten(t *testing.T) {
	m := write(t, 100, 1, 99)
	parts, err := New(m).Open(context.Background(), nil)
	if err != nil || len(parts) != 3 {
		t.Fatal(len(parts), err)
	}
	i := 0
	for _, p := range parts {
		p.SetSplitBytes(3000)
		parser := p.NewParser(nil)
		for {
			next, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			splits, _ := p.Add(next)
			if _, _, err := parser.Parse(splits[0], func(rec *record.Record) {
				want := row(i)
				if a, b := show(rec), show(want); a != b {
					t.Errorf("row %d is\n%s, want\n%s", i, a, b)
				}
				i++
			}); err != nil {
				t.Fatal(err)
			}
		}
		must(t, p.Close())
	}
	if i != 200 || m.Rows != 200 || *m.Smallest != 1 || *m.Largest != 5000 {
		t.Errorf("%d rows; the manifest has %d, %d to %d", i, m.Rows, *m.Smallest, *m.Largest)
	}
}

// show is a record in words, in which a double is its bits.
func show(rec *record.Record) string {
	if rec.Bad != nil {
		return "bad: " + rec.Bad.Message
	}
	var s strings.Builder
	datum := func(d *record.Datum) {
		fmt.Fprintf(&s, "%d %d %x %q; ", d.Kind, d.Int, math.Float64bits(d.Double), d.Bytes)
	}
	for i := range rec.Fields {
		datum(&rec.Fields[i])
	}
	for i := range rec.Cells {
		fmt.Fprintf(&s, "%q at %d ", rec.Cells[i].Name, rec.Cells[i].At)
		datum(&rec.Cells[i].Datum)
	}
	return s.String()
}

func TestADamagedArchiveIsRefusedBeforeItsFirstRow(t *testing.T) {
	for _, c := range []struct {
		name, want string
		damage     func(m *archive.Manifest, part func(i int) string) error
	}{
		{"missing", "is missing", func(_ *archive.Manifest, part func(int) string) error { return os.Remove(part(1)) }},
		{"truncated", "bytes, and the manifest says", func(m *archive.Manifest, part func(int) string) error {
			return os.Truncate(part(1), m.Parts[1].Bytes-1)
		}},
		{"swapped", "was swapped: it is", func(_ *archive.Manifest, part func(int) string) error {
			return errors.Join(os.Rename(part(0), part(0)+"x"), os.Rename(part(1), part(0)), os.Rename(part(0)+"x", part(1)))
		}},
		{"flipped bit", "its sha256 is not that of the manifest", func(_ *archive.Manifest, part func(int) string) error {
			b, err := os.ReadFile(part(2))
			b[len(b)/2] ^= 4
			return errors.Join(err, os.WriteFile(part(2), b, 0o600))
		}},
		{"a folder", "is not a file", func(_ *archive.Manifest, part func(int) string) error {
			return errors.Join(os.Remove(part(0)), os.Mkdir(part(0), 0o700))
		}},
		{"edited manifest", "its sha256 is not that of its text", edit(`"rows": 70`, `"rows": 71`)},
		{"newer format", "take a newer tsimport", edit(`"version": 2`, `"version": 3`)},
		{"another format", "is not the manifest of an archive", edit(archive.Format, "my-archive")},
		{"broken manifest", "changed or damaged", edit(`"rows": 70`, `"rows": `)},
		{"manifest gone", "it has no manifest.json", func(m *archive.Manifest, _ func(int) string) error {
			return os.Remove(filepath.Join(m.Dir(), archive.ManifestName))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := write(t, 30, 20, 20)
			must(t, c.damage(m, func(i int) string { return m.Path(&m.Parts[i]) }))
			m, err := archive.Read(m.Dir())
			if err == nil {
				_, err = New(m).Open(context.Background(), nil)
			}
			damaged := new(archive.DamagedError)
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func edit(from, to string) func(*archive.Manifest, func(int) string) error {
	return func(m *archive.Manifest, _ func(int) string) error {
		file := filepath.Join(m.Dir(), archive.ManifestName)
		b, err := os.ReadFile(file)
		if !bytes.Contains(b, []byte(from)) {
			return fmt.Errorf("no %s", from)
		}
		return errors.Join(err, os.WriteFile(file, bytes.Replace(b, []byte(from), []byte(to), 1), 0o600))
	}
}

func TestAPartThatChangesWhileItIsReadFailsInPlaceOfItsEnd(t *testing.T) {
	m := write(t, 50)
	parts, err := New(m).Open(context.Background(), nil)
	must(t, err)
	other := write(t, 51)
	must(t, os.Rename(other.Path(&other.Parts[0]), m.Path(&m.Parts[0])))
	defer parts[0].Close()
	for err == nil {
		_, err = parts[0].Next()
	}
	if damaged := new(archive.DamagedError); !errors.As(err, &damaged) {
		t.Errorf("%v, want that it was changed", err)
	}
}
