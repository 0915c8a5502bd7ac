package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/scan"
)

// kept is a table t in memory: what is in it may change with each reading.
type kept struct {
	readings int
	rows     func(reading int) (rows int, err error) // err comes after the rows
}

func (k *kept) subject() *Subject {
	return &Subject{Target: "here", Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}}, TimeToLive: -1, MaxVersions: 1,
		Rows: func(each func(*scan.Row) error) error {
			k.readings++
			rows, err := k.rows(k.readings)
			for i := range rows {
				r := &scan.Row{PrimaryKey: new(tablestore.PrimaryKey), Columns: []*tablestore.AttributeColumn{
					{ColumnName: "b", Value: "line\nend"}, {ColumnName: "a", Value: int64(i)}, {ColumnName: "c", Value: []byte{0, 255}},
				}}
				if k.readings%2 == 0 { // a service that answers columns in another order
					r.Columns[0], r.Columns[1] = r.Columns[1], r.Columns[0]
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
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
	m, err := f.Export(k.subject())
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, filepath.Join(dir, "t.jsonl"))
	sum := sha256.Sum256([]byte(text))
	if m.State != Verified || m.Rows != 1000 || m.Bytes != int64(len(text)) || m.SHA256 != hex.EncodeToString(sum[:]) || k.readings != 2 {
		t.Errorf("%+v after %d readings", m, k.readings)
	}
	if first, _, _ := strings.Cut(text, "\n"); first != `{"id":0,"a":0,"b":"line\nend","c":{"base64":"AP8="}}` || strings.Count(text, "\n") != 1000 {
		t.Errorf("%d lines, the first is %s", strings.Count(text, "\n"), first)
	}
	var beside map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, "t.manifest.json"))), &beside); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"table": "t", "target": "here", "file": "t.jsonl", "format": "jsonl", "state": "verified", "rows": 1000.0, "sha256": m.SHA256,
		"bytes": float64(m.Bytes), "ttl": -1.0, "max_versions": 1.0} {
		if beside[name] != want {
			t.Errorf("%s is %v, want %v", name, beside[name], want)
		}
	}
	if fmt.Sprint(beside["primary_key"]) != "[map[name:id type:integer]]" || beside["exported_at"] == nil || beside["verified_at"] == nil || beside["dropped_at"] != nil {
		t.Errorf("%v", beside)
	}
	if got := files(t, dir); got != "t.jsonl t.manifest.json" {
		t.Errorf("files %s", got)
	}
}

func TestAnEmptyTableIsExportedToo(t *testing.T) {
	f := open(t, t.TempDir())
	m, err := f.Export(of(0).subject())
	if err != nil || m.Rows != 0 || m.State != Verified || !m.Whole(f.Dir) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestACompleteExportIsNeverWrittenOver(t *testing.T) {
	f := open(t, t.TempDir())
	first, err := f.Export(of(10).subject())
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, filepath.Join(f.Dir, first.File))
	second, err := f.Export(of(11).subject())
	if err != nil || second.File != "t-2.jsonl" || second.Rows != 11 {
		t.Fatalf("%+v, %v", second, err)
	}
	if read(t, filepath.Join(f.Dir, first.File)) != text {
		t.Error("the first export was changed")
	}
	last, err := Latest(f.Dir, "here", "t")
	if err != nil || last.File != "t-2.jsonl" {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	f := open(t, t.TempDir())
	foreign := map[string]string{
		"t.jsonl":           "somebody's rows, without a manifest",
		"t-2.manifest.json": "no manifest",
		"t-3.manifest.json": `{"table":"t","target":"elsewhere","file":"t-3.jsonl","state":"exporting"}`,
		"t-4.manifest.json": `{"table":"t","target":"here","file":"../t.jsonl","state":"exporting"}`,
	}
	for name, text := range foreign {
		write(t, filepath.Join(f.Dir, name), text)
	}
	m, err := f.Export(of(1).subject())
	if err != nil || m.File != "t-5.jsonl" {
		t.Errorf("%+v, %v", m, err)
	}
	for name, text := range foreign {
		if got := read(t, filepath.Join(f.Dir, name)); got != text {
			t.Errorf("%s is now %q", name, got)
		}
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
		if _, err := f.Export(cut.subject()); !errors.Is(err, broken) {
			t.Fatalf("%v", err)
		}
		if last, err := Latest(f.Dir, "here", "t"); err != nil || last != nil {
			t.Errorf("a half export counts: %+v, %v", last, err)
		}
		write(t, filepath.Join(f.Dir, "t.jsonl.part"), "half of a row") // a killed process removes nothing
		m, err := f.Export(of(7).subject())
		if err != nil || m.File != "t.jsonl" || m.Rows != 7 {
			t.Errorf("%+v, %v", m, err)
		}
		if got := files(t, f.Dir); got != "t.jsonl t.manifest.json" {
			t.Errorf("files %s", got)
		}
	}
}

func TestAnExportThatWasOnlyNotComparedIsCompared(t *testing.T) {
	for now, file := range map[int]string{7: "t.jsonl", 8: "t.jsonl"} {
		f := open(t, t.TempDir())
		broken := errors.New("the run was killed")
		cut := &kept{rows: func(reading int) (int, error) {
			if reading == 2 {
				return 3, broken
			}
			return 7, nil
		}}
		if _, err := f.Export(cut.subject()); !errors.Is(err, broken) {
			t.Fatalf("%v", err)
		}
		k := of(now)
		m, err := f.Export(k.subject())
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
	m, err := f.Export(quiet.subject())
	if err != nil || m.Rows != 3 || m.File != "t.jsonl" || quiet.readings != 4 {
		t.Errorf("%+v after %d readings, %v", m, quiet.readings, err)
	}
	busy := &kept{rows: func(reading int) (int, error) { return 100 + reading, nil }}
	_, err = f.Export(busy.subject())
	changed := new(ChangedError)
	if !errors.As(err, &changed) || !strings.Contains(err.Error(), "stop writing to it") || busy.readings != 6 {
		t.Errorf("after %d readings: %v", busy.readings, err)
	}
	if last, err := Latest(f.Dir, "here", "t"); err != nil || last.Rows != 3 {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestVerifyingFindsLaterChanges(t *testing.T) {
	damage := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			write(t, name, string(change([]byte(read(t, name)))))
		}
	}
	for what, v := range map[string]struct {
		spoil   func(*testing.T, string)
		rows    int
		changed bool
	}{
		"a flipped bit":     {damage(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), 10, false},
		"a lost row":        {damage(func(b []byte) []byte { return b[bytes.IndexByte(b, '\n')+1:] }), 10, false},
		"a cut end":         {damage(func(b []byte) []byte { return b[:len(b)-1] }), 10, false},
		"another row":       {damage(func(b []byte) []byte { return append(b, "{}\n"...) }), 10, false},
		"a missing file":    {func(t *testing.T, name string) { os.Remove(name) }, 10, false},
		"a folder":          {func(t *testing.T, name string) { os.Remove(name); os.Mkdir(name, 0o755) }, 10, false},
		"a row more":        {func(*testing.T, string) {}, 11, true},
		"a row less":        {func(*testing.T, string) {}, 9, true},
		"nothing different": {func(*testing.T, string) {}, 10, false},
	} {
		t.Run(what, func(t *testing.T) {
			f := open(t, t.TempDir())
			m, err := f.Export(of(10).subject())
			if err != nil {
				t.Fatal(err)
			}
			v.spoil(t, filepath.Join(f.Dir, m.File))
			err = f.Verify(m, of(v.rows).subject())
			changed, damaged := new(ChangedError), new(DamagedError)
			switch {
			case what == "nothing different":
				if err != nil {
					t.Error(err)
				}
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
	m, err := f.Export(of(10).subject())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.MarkDropped(m); err != nil {
		t.Fatal(err)
	}
	last, err := Latest(f.Dir, "here", "t")
	if err != nil || last.State != Dropped || last.DroppedAt == nil || !last.Complete() {
		t.Errorf("%+v, %v", last, err)
	}
	if err := f.Verify(last, of(10).subject()); err != nil || last.State != Verified || last.DroppedAt != nil {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestAFolderIsUsedByOneAtATime(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	if f, err := Open(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("%v, %v", f, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err := os.MkdirAll(filepath.Join(blocked, "t.manifest.json.part"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, blocked).Export(of(1).subject()); err == nil || !strings.Contains(err.Error(), "write manifest of table t") {
		t.Errorf("%v", err)
	}
	blocked = filepath.Join(dir, "blocked-too")
	if err := os.MkdirAll(filepath.Join(blocked, "t.jsonl.part"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, blocked).Export(of(1).subject()); err == nil || !strings.Contains(err.Error(), "export table t") {
		t.Errorf("%v", err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "t.manifest.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Latest(folder, "here", "t"); err == nil {
		t.Error("a folder was read as a manifest")
	}
}
