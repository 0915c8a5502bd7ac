package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	exact "example.com/tsimport/reader/archivefile"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var must = conformance.Must

// kept is a table t in memory: what is in it may change with each reading.
type kept struct {
	readings int
	rows     func(reading int) (rows int, err error) // err comes after the rows
}

func (k *kept) subject() *Subject {
	return &Subject{Target: "here", Table: "t", Created: 7, Key: []table.KeyColumn{{Name: "id", Type: table.Integer}}, Is: exact.Manifest{Options: table.Definition{TimeToLive: -1, MaxVersions: 2}},
		Rows: func(each func(*scan.Row) error) error {
			k.readings++
			rows, err := k.rows(k.readings)
			for i := range rows {
				r := &scan.Row{PrimaryKey: new(tablestore.PrimaryKey), Columns: []*tablestore.AttributeColumn{
					{ColumnName: "b", Value: "line\nend", Timestamp: 5}, {ColumnName: "a", Value: int64(i), Timestamp: 5}, {ColumnName: "a", Value: 1.0, Timestamp: 4}, {ColumnName: "c", Value: []byte{0, 255}, Timestamp: 5},
				}}
				if k.readings%2 == 0 { // a service that answers columns in another order
					r.Columns[0], r.Columns[2], r.Columns[3] = r.Columns[3], r.Columns[0], r.Columns[2]
				}
				r.PrimaryKey.AddPrimaryKeyColumn("id", int64(i))
				if err := each(r); err != nil {
					return err
				}
			}
			return err
		}}
}

func of(rows int) *kept { return &kept{rows: func(int) (int, error) { return rows, nil }} }

func open(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}

// lines is the text of an export's archive.
func lines(t *testing.T, dir string) (text string, m *exact.Manifest) {
	t.Helper()
	m, err := exact.Read(dir)
	must(t, err)
	for i := range m.Parts {
		d, err := zstd.NewReader(strings.NewReader(read(t, m.Path(&m.Parts[i]))))
		must(t, err)
		part, err := io.ReadAll(d)
		d.Close()
		must(t, err)
		text += string(part)
	}
	return text, m
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestAnExportHasItsRowsACountAndAChecksum(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	f, k := open(t, dir), of(1000)
	m, err := f.Export(t.Context(), k.subject())
	must(t, err)
	text, is := lines(t, filepath.Join(dir, "t"))
	sum := sha256.Sum256([]byte(text))
	if m.State != Verified || m.Rows != 1000 || m.Bytes != is.Bytes || m.SHA256 != hex.EncodeToString(sum[:]) || k.readings != 2 {
		t.Errorf("%+v after %d readings", m, k.readings)
	}
	const want = `{"Wide":true,"PK":{"Values":[{"C":"id","V":0,"IsInt":true}]},"Attr":{"Values":[{"C":"a","V":0,"IsInt":true,"TS":5},{"C":"a","V":1,"TS":4},{"C":"b","V":"line\nend","TS":5},{"C":"c","V":"AP8=","T":"binary","TS":5}]}}`
	if first, _, _ := strings.Cut(text, "\n"); first != want || strings.Count(text, "\n") != 1000 {
		t.Errorf("%d lines, the first is %s", strings.Count(text, "\n"), first)
	}
	if is.Table != "t" || is.Rows != 1000 || is.Cells != 4000 || is.Created != 7 || is.Versions != 2 || is.Options.TimeToLive != -1 || *is.Smallest != 4 || *is.Largest != 5 {
		t.Errorf("%+v", is)
	}
	var beside map[string]any
	must(t, json.Unmarshal([]byte(read(t, filepath.Join(dir, "t.manifest.json"))), &beside))
	for name, want := range map[string]any{"table": "t", "target": "here", "file": "t", "format": "archive", "state": "verified", "rows": 1000.0, "sha256": m.SHA256, "bytes": float64(m.Bytes)} {
		conformance.Equal(t, beside[name], want, "%s", name)
	}
	if beside["exported_at"] == nil || beside["verified_at"] == nil || beside["dropped_at"] != nil {
		t.Errorf("%v", beside)
	}
	conformance.Equal(t, files(t, dir), "t t.manifest.json", "files")
}

func TestALargeExportHasSeveralParts(t *testing.T) {
	whole, parted := open(t, t.TempDir()), open(t, t.TempDir())
	parted.partBytes = 2000
	var texts [2]string
	for i, f := range []*Folder{whole, parted} {
		m, err := f.Export(t.Context(), of(300).subject())
		if err != nil || m.Rows != 300 {
			t.Fatalf("%+v, %v", m, err)
		}
		var is *exact.Manifest
		if texts[i], is = lines(t, filepath.Join(f.Dir, "t")); len(is.Parts) > 1 != (i == 1) || is.Rows != 300 {
			t.Errorf("%d parts, %d rows", len(is.Parts), is.Rows)
		}
	}
	conformance.Equal(t, texts[0], texts[1], "the parts have other rows")
}

func TestAnEmptyTableIsExportedToo(t *testing.T) {
	f := open(t, t.TempDir())
	m, err := f.Export(t.Context(), of(0).subject())
	if err != nil || m.Rows != 0 || m.State != Verified || !m.Whole(f.Dir) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestACompleteExportIsNeverWrittenOver(t *testing.T) {
	f := open(t, t.TempDir())
	first, err := f.Export(t.Context(), of(10).subject())
	must(t, err)
	text, _ := lines(t, filepath.Join(f.Dir, first.File))
	second, err := f.Export(t.Context(), of(11).subject())
	if err != nil || second.File != "t-2" || second.Rows != 11 {
		t.Fatalf("%+v, %v", second, err)
	}
	if now, _ := lines(t, filepath.Join(f.Dir, first.File)); now != text {
		t.Error("the first export was changed")
	}
	last, err := Latest(f.Dir, "here", "t")
	if err != nil || last.File != "t-2" {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	f := open(t, t.TempDir())
	foreign := map[string]string{
		"t":                 "somebody's rows, without a manifest",
		"t-2.manifest.json": "no manifest",
		"t-3.manifest.json": `{"table":"t","target":"elsewhere","file":"t-3","state":"exporting"}`,
		"t-4.manifest.json": `{"table":"t","target":"here","file":"../t","state":"exporting"}`,
		"t-5.manifest.json": `{"table":"t","target":"here","file":"t-5.jsonl","format":"jsonl","state":"verified"}`, // of an earlier version
	}
	for name, text := range foreign {
		write(t, filepath.Join(f.Dir, name), text)
	}
	m, err := f.Export(t.Context(), of(1).subject())
	if err != nil || m.File != "t-6" {
		t.Errorf("%+v, %v", m, err)
	}
	for name, text := range foreign {
		conformance.Equal(t, read(t, filepath.Join(f.Dir, name)), text, "%s", name)
	}
	if other, err := Latest(f.Dir, "elsewhere", "t"); err != nil || other != nil {
		t.Errorf("a table of another instance has the export %+v, %v", other, err)
	}
}

func TestAnInterruptedExportIsMadeAgain(t *testing.T) {
	for _, rows := range []int{0, 5, 2000} {
		f := open(t, t.TempDir())
		broken := errors.New("the run was killed")
		cut := &kept{rows: func(int) (int, error) { return rows, broken }}
		if _, err := f.Export(t.Context(), cut.subject()); !errors.Is(err, broken) {
			t.Fatalf("%v", err)
		}
		if last, err := Latest(f.Dir, "here", "t"); err != nil || last != nil {
			t.Errorf("a half export counts: %+v, %v", last, err)
		}
		must(t, os.MkdirAll(filepath.Join(f.Dir, "t"), 0o700))
		write(t, filepath.Join(f.Dir, "t", "archive-00001-00001.jsonl.zst.part"), "half of a row") // a killed process removes nothing
		m, err := f.Export(t.Context(), of(7).subject())
		if err != nil || m.File != "t" || m.Rows != 7 {
			t.Errorf("%+v, %v", m, err)
		}
		if got := files(t, f.Dir) + ": " + files(t, filepath.Join(f.Dir, "t")); got != "t t.manifest.json: archive-00001-00001.jsonl.zst manifest.json" {
			t.Errorf("files %s", got)
		}
	}
}

func TestAnExportThatWasKilledBeforeItWasNotedIsMadeAgain(t *testing.T) {
	f := open(t, t.TempDir())
	m, err := f.Export(t.Context(), of(5).subject())
	must(t, err)
	m.State = Exporting
	must(t, m.write(f.Dir))
	if m, err = f.Export(t.Context(), of(7).subject()); err != nil || m.File != "t" || m.Rows != 7 {
		t.Errorf("%+v, %v", m, err)
	}
	if text, _ := lines(t, filepath.Join(f.Dir, "t")); strings.Count(text, "\n") != 7 {
		t.Errorf("the archive has %q", text)
	}
}

func TestAnExportThatWasOnlyNotComparedIsCompared(t *testing.T) {
	for now, file := range map[int]string{7: "t", 8: "t"} {
		f := open(t, t.TempDir())
		broken := errors.New("the run was killed")
		cut := &kept{rows: func(reading int) (int, error) {
			if reading == 2 {
				return 3, broken
			}
			return 7, nil
		}}
		if _, err := f.Export(t.Context(), cut.subject()); !errors.Is(err, broken) {
			t.Fatalf("%v", err)
		}
		k := of(now)
		m, err := f.Export(t.Context(), k.subject())
		if err != nil || m.File != file || m.Rows != int64(now) || m.State != Verified {
			t.Errorf("%+v, %v", m, err)
		}
		if want := map[int]int{7: 1, 8: 3}[now]; k.readings != want {
			t.Errorf("%d rows: %d readings, want %d", now, k.readings, want)
		}
	}
}

func TestATableThatChangesMeanwhileIsExportedAgain(t *testing.T) {
	f := open(t, t.TempDir())
	quiet := &kept{rows: func(reading int) (int, error) { return min(reading, 3), nil }}
	m, err := f.Export(t.Context(), quiet.subject())
	if err != nil || m.Rows != 3 || m.File != "t" || quiet.readings != 4 {
		t.Errorf("%+v after %d readings, %v", m, quiet.readings, err)
	}
	busy := &kept{rows: func(reading int) (int, error) { return 100 + reading, nil }}
	_, err = f.Export(t.Context(), busy.subject())
	changed := new(ChangedError)
	if !errors.As(err, &changed) || !strings.Contains(err.Error(), "stop writing to it") || busy.readings != 6 {
		t.Errorf("after %d readings: %v", busy.readings, err)
	}
	if last, err := Latest(f.Dir, "here", "t"); err != nil || last.Rows != 3 {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestVerifyingFindsLaterChanges(t *testing.T) {
	const part = "archive-00001-00001.jsonl.zst"
	damage := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			name := filepath.Join(dir, name)
			write(t, name, string(change([]byte(read(t, name)))))
		}
	}
	nothing := func(*testing.T, string) {}
	for what, v := range map[string]struct {
		spoil   func(t *testing.T, dir string)
		rows    int
		changed bool
	}{
		"a flipped bit":      {damage(part, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), 10, false},
		"a cut end":          {damage(part, func(b []byte) []byte { return b[:len(b)-1] }), 10, false},
		"bytes more":         {damage(part, func(b []byte) []byte { return append(b, b...) }), 10, false},
		"a missing part":     {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, part)) }, 10, false},
		"an edited manifest": {damage(exact.ManifestName, func(b []byte) []byte { return bytes.Replace(b, []byte(`"rows": 10`), []byte(`"rows": 11`), 1) }), 10, false},
		"a missing manifest": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, exact.ManifestName)) }, 10, false},
		"a missing folder":   {func(t *testing.T, dir string) { os.RemoveAll(dir) }, 10, false},
		"another archive": {func(t *testing.T, dir string) {
			other := open(t, t.TempDir())
			_, err := other.Export(t.Context(), of(11).subject())
			must(t, err)
			os.RemoveAll(dir)
			must(t, os.Rename(filepath.Join(other.Dir, "t"), dir))
		}, 11, false},
		"a row more":        {nothing, 11, true},
		"a row less":        {nothing, 9, true},
		"nothing different": {nothing, 10, false},
	} {
		t.Run(what, func(t *testing.T) {
			f := open(t, t.TempDir())
			m, err := f.Export(t.Context(), of(10).subject())
			must(t, err)
			v.spoil(t, filepath.Join(f.Dir, m.File))
			err = f.Verify(t.Context(), m, of(v.rows).subject())
			changed, damaged := new(ChangedError), new(DamagedError)
			switch {
			case what == "nothing different":
				conformance.Equal(t, err, nil, "error")
			case v.changed:
				if !errors.As(err, &changed) {
					t.Errorf("%v", err)
				}
			case !errors.As(err, &damaged) || strings.Contains(err.Error(), "\n"):
				t.Errorf("%v", err)
			}
		})
	}
}

func TestADroppedTablesExportIsMarkedAndUnmarkedWhenTheTableIsFound(t *testing.T) {
	f := open(t, t.TempDir())
	m, err := f.Export(t.Context(), of(10).subject())
	must(t, err)
	must(t, f.MarkDropped(m))
	last, err := Latest(f.Dir, "here", "t")
	if err != nil || last.State != Dropped || last.DroppedAt == nil || !last.Complete() {
		t.Errorf("%+v, %v", last, err)
	}
	if err := f.Verify(t.Context(), last, of(10).subject()); err != nil || last.State != Verified || last.DroppedAt != nil {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestAFolderIsUsedByOneAtATime(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	if f, err := Open(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("%v, %v", f, err)
	}
	must(t, first.Close())
	open(t, dir)
}

func TestAFolderThatCannotBeUsedIsAnError(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "")
	if _, err := Open(file); err == nil {
		t.Error("a file was opened as a folder")
	}
	if _, err := Open(filepath.Join(file, "below")); err == nil {
		t.Error("a folder below a file was opened")
	}
	if last, err := Latest(filepath.Join(dir, "none"), "here", "t"); last != nil || err != nil {
		t.Errorf("a missing folder: %+v, %v", last, err)
	}
	if _, err := Latest(file, "here", "t"); err == nil {
		t.Error("a file was looked into")
	}
	blocked := filepath.Join(dir, "blocked")
	must(t, os.MkdirAll(filepath.Join(blocked, "t.manifest.json.part"), 0o755))
	_, err := open(t, blocked).Export(t.Context(), of(1).subject())
	conformance.Refused(t, err, "write manifest of table t", "error")
	blocked = filepath.Join(dir, "blocked-too")
	must(t, os.Mkdir(blocked, 0o755))
	write(t, filepath.Join(blocked, "t.manifest.json"), `{"table":"t","target":"here","file":"t","state":"exporting"}`)
	write(t, filepath.Join(blocked, "t"), "a file in place of the folder")
	_, err = open(t, blocked).Export(t.Context(), of(1).subject())
	conformance.Refused(t, err, "export table t", "error")
	folder := filepath.Join(dir, "folder")
	must(t, os.MkdirAll(filepath.Join(folder, "t.manifest.json"), 0o755))
	if _, err := Latest(folder, "here", "t"); err == nil {
		t.Error("a folder was read as a manifest")
	}
}

// Others may have put links where a table's archive and its manifest are written.
func TestLinksInThePlaceOfPartsAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	if err := os.Symlink(victim, filepath.Join(dir, manifestName("t", 1)+".part")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "t")); err != nil { // is not followed, and passed by
		t.Fatal(err)
	}
	m, err := open(t, dir).Export(t.Context(), of(3).subject())
	if err != nil || m.Rows != 3 || m.File != "t-2" {
		t.Fatalf("%+v, %v", m, err)
	}
	conformance.Equal(t, read(t, victim), "precious", "the file behind the links")
}
