package archive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

var key = []table.KeyColumn{{Name: "id", Type: table.Integer}}

func subject() Subject {
	return Subject{Table: "t", Key: key, Ranges: []string{"low", "high"}}
}

// row returns a row whose cell has one version per time.
func row(id int64, times ...int64) *record.Record {
	r := &record.Record{Fields: []record.Datum{{Kind: record.Integer, Int: id}}}
	for _, at := range times {
		r.Cells = append(r.Cells, record.Cell{Name: []byte("c"), Datum: record.Datum{Kind: record.Integer, Int: at}, At: at})
	}
	return r
}

// writePart adds a part with the rows to a range. If next is nil, it ends the range.
func writePart(t *testing.T, w *Writer, rng int, next []byte, rows ...*record.Record) {
	t.Helper()
	p := conformance.Try(w.NewPart(rng)).Must(t)
	for _, r := range rows {
		must(t, p.Row(r))
	}
	must(t, p.Commit(next))
}

// begun begins an archive in dir.
func begun(t *testing.T, dir string) *Writer {
	t.Helper()
	w := conformance.Try(Exact.Open(dir, false)).Must(t)
	must(t, w.Begin(subject()))
	return w
}

// finished returns the manifest of a finished archive with three parts.
func finished(t *testing.T) *Manifest {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a")
	w := begun(t, dir)
	writePart(t, w, 1, nil, row(7, 70))
	writePart(t, w, 0, []byte("3"), row(1, 30, 20, 10), row(2))
	writePart(t, w, 0, nil, row(3, 40))
	must(t, conformance.ErrorOf(w.Finish(Manifest{Options: table.Definition{TimeToLive: -1, MaxVersions: 3}})))
	must(t, w.Close())
	return conformance.Try(Read(dir)).Must(t)
}

func TestManifestDescribesParts(t *testing.T) {
	m := finished(t)
	conformance.True(t, m.Rows == 4 && m.Cells == 5 && m.Versions == 3 && *m.Smallest == 10 && *m.Largest == 70,
		"%d rows, %d cells, %d versions, %d to %d", m.Rows, m.Cells, m.Versions, *m.Smallest, *m.Largest)
	var text string
	var bytesOfParts int64
	for _, p := range m.Parts {
		text += fmt.Sprintf("%d: %d rows; ", p.Range, p.Rows)
		bytesOfParts += p.Bytes
	}
	conformance.True(t, text == "0: 2 rows; 0: 1 rows; 1: 1 rows; " && m.Bytes == bytesOfParts, "%s%d", text, m.Bytes)
	conformance.True(t, m.Ranges[0].Rows == 3 && m.Ranges[0].Name == "low" && m.Ranges[1].Rows == 1, "%+v", m.Ranges)
	conformance.Same(t, m.Key, key, "key")
	must(t, m.Check(t.Context()))
	manifest := filepath.Join(m.Dir(), ManifestName)
	conformance.True(t, Is(m.Dir()) && Is(manifest) && !Is(m.Path(&m.Parts[0])) && !Is(t.TempDir()),
		"an archive is its folder or its manifest, and nothing else")
	for _, e := range conformance.Try(os.ReadDir(m.Dir())).Must(t) {
		conformance.True(t, e.Name() != journalName && !strings.HasSuffix(e.Name(), ".tmp"), "%s is left", e.Name())
	}
}

func TestDamageIsReportedBeforeFirstRow(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(m *Manifest) error
		want   string
	}{
		"a part is missing": {func(m *Manifest) error { return os.Remove(m.Path(&m.Parts[1])) }, "missing"},
		"a part is cut": {func(m *Manifest) error { return os.Truncate(m.Path(&m.Parts[1]), m.Parts[1].Bytes-1) },
			"the manifest says"},
		"a part is a folder": {func(m *Manifest) error {
			return errors.Join(os.Remove(m.Path(&m.Parts[0])), os.Mkdir(m.Path(&m.Parts[0]), 0o700))
		}, "not a file"},
		"a bit of a part": {func(m *Manifest) error {
			return change(m.Path(&m.Parts[2]), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, "sha256"},
		"parts are swapped": {swap, "swapped"},
		"the manifest is gone": {func(m *Manifest) error { return os.Remove(filepath.Join(m.Dir(), ManifestName)) },
			"no manifest.json"},
		"the manifest is edited": {edit(`"rows": 4`, `"rows": 5`), "does not match its text"},
		"the format is newer":    {edit(`"version": 2`, `"version": 3`), "it has version 3 of the format"},
		"another format":         {edit(Format, "other"), "not the manifest of an archive"},
		"no sum":                 {edit(`"sha256":`, `"sha257":`), "no sha256"},
		"half a manifest": {func(m *Manifest) error {
			return change(filepath.Join(m.Dir(), ManifestName), func(b []byte) []byte { return b[:len(b)/2] })
		}, "changed or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			m := finished(t)
			must(t, c.damage(m))
			again, err := Read(m.Dir())
			if err == nil {
				_, err = New(again).Open(t.Context(), nil)
			}
			conformance.True(t, errors.As(err, new(*DamagedError)), "%v", err)
			conformance.InALine(t, err, c.want, "damage")
		})
	}
}

func change(file string, how func([]byte) []byte) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, how(b), 0o600)
}

// edit replaces all occurrences of from in the manifest.
func edit(from, to string) func(*Manifest) error {
	return func(m *Manifest) error {
		return change(filepath.Join(m.Dir(), ManifestName),
			func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) })
	}
}

func swap(m *Manifest) error {
	a, b, free := m.Path(&m.Parts[0]), m.Path(&m.Parts[1]), filepath.Join(m.Dir(), "free")
	return errors.Join(os.Rename(a, free), os.Rename(b, a), os.Rename(free, b))
}

func TestOnlySameExportContinuesArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	w := begun(t, dir)
	writePart(t, w, 0, []byte("3"), row(1), row(2))
	conformance.Refused(t, conformance.ErrorOf(w.Finish(Manifest{})), "", "an archive with open ranges was finished")
	conformance.Refused(t, conformance.ErrorOf(Exact.Open(dir, false)), "another process", "a second writer")
	must(t, w.Close())
	conformance.Refused(t, conformance.ErrorOf(Read(dir)), "not finished", "contents read")
	w = conformance.Try(Exact.Open(dir, false)).Must(t)
	other := subject()
	other.Holds.From = "5"
	err := w.Begin(other)
	conformance.True(t, errors.As(err, new(*ChangedError)) && strings.Contains(err.Error(), "--from-key"), "%v", err)
	must(t, w.Begin(subject()))
	at := w.Range(0)
	conformance.True(t, w.Resumed == 2 && w.Rows() == 2 && string(at.Next) == "3" && !at.Ended, "%+v, at %+v", w, at)
	writePart(t, w, 0, nil, row(3))
	must(t, w.End(1))
	m, err := w.Finish(Manifest{})
	conformance.True(t, err == nil && m.Rows == 3, "%+v, %v", m, err)
	m, err = Read(dir)
	conformance.True(t, err == nil && m.Rows == 3 && m.Check(t.Context()) == nil, "%+v, %v", m, err)
	must(t, w.Close())
	_, err = Exact.Open(dir, true)
	conformance.True(t, errors.As(err, new(*OccupiedError)), "a complete archive was opened again: %v", err)
}

// fullPlace fails one operation with ENOSPC. A failing journal write leaves part of its line.
type fullPlace struct {
	place
	left int // number of operations before the failing one
}

func (f *fullPlace) full() error {
	if f.left--; f.left == -1 {
		return syscall.ENOSPC
	}
	return nil
}

func (f *fullPlace) put(name string, body []byte) error {
	if err := f.full(); err != nil {
		return err
	}
	return f.place.put(name, body)
}

func (f *fullPlace) beginJournal(line []byte) error {
	return errors.Join(f.full(), f.place.beginJournal(line)) // the journal may already exist
}

func (f *fullPlace) appendJournal(line []byte) error {
	err := f.full()
	if folder, ok := f.place.(*folder); ok && err != nil {
		_, _ = folder.journal.Write(line[:len(line)/2])
		folder.torn = err
	}
	if err != nil {
		return err
	}
	return f.place.appendJournal(line)
}

func (f *fullPlace) clean() error {
	if err := f.full(); err != nil {
		return err
	}
	return f.place.clean()
}

// export writes an archive of 60 rows in two ranges. It resumes an interrupted one.
func export(at place) (err error) {
	w, err := Exact.open(at, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Begin(subject()); err != nil {
		return err
	}
	for rng := range 2 {
		for !w.Range(rng).Ended {
			at := w.Range(rng)
			if at.Rows == 30 {
				if err := w.End(rng); err != nil {
					return err
				}
				continue
			}
			p, err := w.NewPart(rng)
			if err != nil {
				return err
			}
			for i := range int64(10) {
				if err := p.Row(row(int64(rng)*30+at.Rows+i, i)); err != nil {
					return errors.Join(err, p.Abandon())
				}
			}
			if err := p.Commit([]byte("next")); err != nil {
				return err
			}
		}
	}
	_, err = w.Finish(Manifest{})
	return err
}

// TestArchiveOnFullDiskIsContinued makes each operation fail in turn, in a folder and in a store.
func TestArchiveOnFullDiskIsContinued(t *testing.T) {
	ctx := t.Context()
	for kind, open := range map[string]func(dir string) (place, error){
		"folder": func(dir string) (place, error) { return newFolder(dir) },
		"store": func(dir string) (place, error) {
			s, err := jobdir.Open(ctx, dir, jobdir.Options{})
			return &objects{ctx: ctx, store: s}, err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for n := 0; ; n++ {
				dir := filepath.Join(t.TempDir(), "a")
				at := conformance.Try(open(dir)).Must(t)
				failing := &fullPlace{at, n}
				switch err := export(failing); {
				case failing.left >= 0 && err == nil && n > 15:
					return
				case !errors.Is(err, syscall.ENOSPC):
					t.Fatalf("operation %d: %v", n, err)
				}
				m, err := Read(dir)
				if err == nil { // everything was done except removing the journal
					err = m.Check(ctx)
				} else if at, err = open(dir); err == nil {
					err = export(at)
				}
				conformance.MustEqual(t, err, nil, "after operation %d", n)
				if m, err = Read(dir); err != nil || m.Rows != 60 || len(m.Parts) != 6 || m.Check(ctx) != nil {
					t.Fatalf("after operation %d: %+v, %v", n, m, err)
				}
			}
		})
	}
}

var wideKey = []table.KeyColumn{{Name: "id", Type: table.Integer}, {Name: "name", Type: table.String},
	{Name: "raw", Type: table.Binary}}

func wideRow(i int) *record.Record {
	rec := &record.Record{Fields: []record.Datum{
		{Kind: record.Integer, Int: math.MinInt64 + int64(i)},
		{Kind: record.String, Bytes: []byte(fmt.Sprintf("\x00 \"<é\xff%d", i)[:5+i%3])},
		{Kind: record.Binary, Bytes: bytes.Repeat([]byte{255}, i%4)},
	}}
	for _, d := range []float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(),
		math.Inf(-1), 1e21, 0.1}[i%8:] {
		rec.Cells = append(rec.Cells, sourcetest.WideCell(fmt.Sprint("d", len(rec.Cells)),
			record.Datum{Kind: record.Double, Double: d}, int64(1000+i)))
	}
	for v := range i % 5 {
		rec.Cells = append(rec.Cells, sourcetest.WideCell("versions", sourcetest.OfAnyType(i+v), int64(5000-v)))
	}
	if i%3 == 0 {
		rec.Cells = append(rec.Cells, sourcetest.WideCell("列\U0010ffff", record.Datum{Kind: record.String, Bytes: []byte{}},
			1), sourcetest.WideCell("b", record.Datum{Kind: record.Binary, Bytes: []byte{}}, 2),
			sourcetest.WideCell("no text", record.Datum{Kind: record.String, Bytes: []byte("\xff\xfe")}, 2))
	}
	return rec
}

func written(t *testing.T, rows int) *Manifest {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a")
	w := conformance.Try(Exact.Open(dir, false)).Must(t)
	must(t, w.Begin(Subject{Table: "t", Key: wideKey, Ranges: []string{"t"}}))
	var all []*record.Record
	for i := range rows {
		all = append(all, wideRow(i))
	}
	writePart(t, w, 0, nil, all...)
	must(t, errors.Join(conformance.ErrorOf(w.Finish(Manifest{})), w.Close()))
	return conformance.Try(Read(dir)).Must(t)
}

func TestArchivePositionPrecedesExport(t *testing.T) {
	m := written(t, 1)
	p := New(m).Position()
	conformance.True(t, p.ResumeFrom == nil, "an archive that does not say when it was begun: %s", p.Follow())
	m.Began = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	conformance.Equal(t, New(m).Position().Follow(),
		"to follow the source from here: resume_from 2026-01-02T03:03:05.006Z", "")
}

func TestPartKeepsSourceContract(t *testing.T) {
	m := written(t, 300)
	open := func() source.Source {
		parts := conformance.Try(New(m).Open(t.Context(), nil)).Must(t)
		parts[0].SetSplitBytes(5000)
		return parts[0]
	}
	sourcetest.Check(t, open)
	shown := func(r *record.Record) string { return fmt.Sprint(r.Bad, r.Fields, r.Cells) }
	s, i := open(), 0
	defer s.Close()
	for sp, err := range source.Splits(s) {
		must(t, err)
		_, _, err = s.NewParser(nil).Parse(sp, func(rec *record.Record) {
			conformance.Equal(t, shown(rec), shown(wideRow(i)), "row %d", i)
			i++
		})
		must(t, err)
	}
	conformance.Equal(t, i, 300, "rows")
}

func TestPartReplacedDuringReadFailsAtEnd(t *testing.T) {
	m := written(t, 50)
	parts, err := New(m).Open(t.Context(), nil)
	must(t, err)
	other := written(t, 51)
	must(t, os.Rename(other.Path(&other.Parts[0]), m.Path(&m.Parts[0])))
	defer parts[0].Close()
	for err == nil {
		_, err = parts[0].Next()
	}
	conformance.True(t, errors.As(err, new(*DamagedError)), "%v, want that it was changed", err)
}
