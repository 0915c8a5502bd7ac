package rundir

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

var must = conformance.Must

func read(t *testing.T, path string) string {
	t.Helper()
	return string(conformance.Try(os.ReadFile(path)).Must(t))
}

func create(t *testing.T, path string) *Folder {
	t.Helper()
	return conformance.Try(Create(path, []Header{{Text: []byte("a,b\r\n")}, {}})).Must(t)
}

func reject(t *testing.T, f *Folder, header int, raw string) {
	t.Helper()
	must(t, f.Reject(header, table.Reject{Location: table.Location{Source: "in.csv", Record: 2},
		Reason: table.Reason{Code: "Why"}, Raw: []byte(raw)}))
}

func TestRecordsAreKeptByteForByteUnderTheirHeader(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	got := f.RejectsFiles()
	conformance.True(t, got == nil, "a run without rejects made: %v", got)
	reject(t, f, 0, "1,\"x\ny\"\r\n")
	reject(t, f, 1, "no header, no line end")
	reject(t, f, 0, "\xff,2\r\n")
	must(t, f.Close())
	conformance.Equal(t, read(t, filepath.Join(dir, "rejects.csv")), "a,b\r\n1,\"x\ny\"\r\n\xff,2\r\n", "rejects.csv")
	conformance.Equal(t, read(t, filepath.Join(dir, "rejects-2.csv")), "no header, no line end\n", "rejects-2.csv")
	conformance.Equal(t, strings.Count(read(t, filepath.Join(dir, ReasonsFile)), `"code":"Why"`), 3, "reasons")
	made := f.RejectsFiles()
	conformance.True(t, len(made) == 3 && filepath.Base(made[2]) == ReasonsFile, "made %q", made)
}

func TestFilesOfEarlierRunsAreMovedAsideAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "g[1]*") // no pattern
	for run := range 3 {
		f := create(t, dir)
		reject(t, f, 0, strings.Repeat("r", run+1))
		must(t, f.Close())
	}
	for name, want := range map[string]string{"attempt-1/rejects.csv": "r\n", "attempt-2/rejects.csv": "rr\n",
		"rejects.csv": "rrr\n"} {
		conformance.Equal(t, read(t, filepath.Join(dir, name)), "a,b\r\n"+want, "%s", name)
	}
	stray := filepath.Join(t.TempDir(), "stray")
	must(t, os.MkdirAll(stray, 0o755))
	must(t, os.WriteFile(filepath.Join(stray, "rejects.csv"), []byte("precious"), 0o644))
	reject(t, create(t, stray), 0, "x")
	conformance.Equal(t, read(t, filepath.Join(stray, "attempt-1", "rejects.csv")), "precious", "without a summary beside")
}

func TestTouchesKnowsTheFoldersOwnFiles(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]bool{"rejects.csv": true, "rejects-2.csv": true, ReasonsFile: true,
		SummaryFile: true, "input.csv": false, "attempt-1/rejects.csv": false} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		conformance.Equal(t, Touches(dir+"/.", filepath.Join(dir, name)), want, "%s", name)
	}
	conformance.True(t, !Touches(filepath.Join(dir, "none"), filepath.Join(dir, "rejects.csv")),
		"a folder that does not exist touches a file")
}

func TestSummaryIsReplacedAtomically(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	conformance.Contains(t, read(t, filepath.Join(dir, SummaryFile)), "running", "at the start")
	must(t, WriteSummary(f.Path, map[string]int{"read": 5}))
	conformance.Equal(t, read(t, filepath.Join(dir, SummaryFile)), "{\n  \"version\": 1,\n  \"read\": 5\n}\n", "summary")
	conformance.Refused(t, conformance.ErrorOf(os.Stat(filepath.Join(dir, SummaryFile+atomicfile.Suffix))), "",
		"the new summary stands beside the old one")
}

func TestReopenedFolderHoldsValidPart(t *testing.T) {
	dir := t.TempDir()
	headers := []Header{{Text: []byte("a,b\r\n")}, {}, {Text: []byte("x\n"), Dir: "k=v"}}
	f := conformance.Try(Create(dir, headers)).Must(t)
	reject(t, f, 0, "1,1\r\n")
	reject(t, f, 2, "no line end")
	must(t, f.Flush())
	kept := f.Kept()
	conformance.Equal(t, len(f.Files()), 3, "open files")
	reasons := read(t, filepath.Join(dir, ReasonsFile))
	reject(t, f, 0, "2,2\r\n")
	reject(t, f, 1, "3\n")
	must(t, f.Close())
	again := conformance.Try(Reopen(dir, headers, kept)).Must(t)
	conformance.Equal(t, read(t, filepath.Join(dir, "rejects.csv")), "a,b\r\n1,1\r\n", "cut back")
	conformance.Equal(t, read(t, filepath.Join(dir, ReasonsFile)), reasons, "reasons cut back")
	_, err := os.Stat(filepath.Join(dir, "rejects-2.csv"))
	conformance.True(t, os.IsNotExist(err), "a file that was made later is still there: %v", err)
	reject(t, again, 0, "4,4\r\n")
	reject(t, again, 1, "5\n")
	reject(t, again, 2, "6\n")
	must(t, again.Close())
	for name, want := range map[string]string{"rejects.csv": "a,b\r\n1,1\r\n4,4\r\n", "rejects-2.csv": "5\n",
		"k=v/rejects-3.csv": "x\nno line end\n6\n"} {
		conformance.Equal(t, read(t, filepath.Join(dir, name)), want, "%s", name)
	}
	conformance.Equal(t, strings.Count(read(t, filepath.Join(dir, ReasonsFile)), "\n"), 5, "reasons")
	for name, length := range again.Kept().Lengths {
		conformance.Equal(t, int64(len(read(t, filepath.Join(dir, name)))), length, "%s: bytes", name)
	}
	must(t, os.Truncate(filepath.Join(dir, "rejects.csv"), 3))
	conformance.Refused(t, conformance.ErrorOf(Reopen(dir, headers, again.Kept())), "--fresh", "a file that lacks rows")
}

func TestOneProcessWorksOnARun(t *testing.T) {
	dir := t.TempDir()
	lock := conformance.Try(TakeLock(dir)).Must(t)
	_, err := TakeLock(dir) // another open file of this process is as good as another process
	held, ok := err.(*HeldError)
	conformance.True(t, ok && held.By.PID == os.Getpid() && held.By.Host != "" &&
		strings.Contains(err.Error(), "is worked on by process"), "a second lock: %v", err)
	must(t, lock.Release())
	conformance.Equal(t, lock.Release(), nil, "released twice")
	lock, err = TakeLock(dir)
	conformance.Equal(t, err, nil, "locked again")
	must(t, lock.Release())
	conformance.Refused(t, conformance.ErrorOf(TakeLock(filepath.Join(dir, "none"))), "", "a missing folder was locked")
}

func TestRecordIsKeptWithItsRecordEnd(t *testing.T) {
	escapes := func(record []byte) bool {
		return bytes.HasSuffix(record, []byte("\n")) && !bytes.HasSuffix(record, []byte("\\\n"))
	}
	for _, tt := range []struct {
		header       Header
		record, want string
	}{{Header{}, "1,a\n", ""}, {Header{}, "1,a", "\n"}, {Header{}, "", ""}, {Header{End: "&|"}, "1,a&|", ""},
		{Header{End: "&|"}, "1,a\n", "&|"}, {Header{End: "\n", Ended: escapes}, "1,a\\\n", "\n"},
		{Header{End: "\n", Ended: escapes}, "1,a\n", ""}} {
		conformance.Equal(t, tt.header.missingEnd([]byte(tt.record)), tt.want, "%q under %q lacks", tt.record, tt.header.End)
	}
}

// Resuming an unfinished run loses nothing that the user has made or changed in its folder.
func TestFilesOfTheUserStayWhenARunIsResumed(t *testing.T) {
	dir := t.TempDir()
	headers := []Header{{Text: []byte("id,v\n")}, {Text: []byte("x,y\n")}}
	f := conformance.Try(Create(dir, headers)).Must(t)
	reject(t, f, 0, "1,bad\n")
	must(t, f.Flush())
	kept := f.Kept()
	reject(t, f, 1, "2,later\n")
	must(t, f.Close())
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	own := []string{"rejects-fixed.csv", "rejects.csv~", "rejects.csv.bak", "rejects.xlsx", "rejects"}
	for _, name := range own {
		write(name, "the user's")
	}
	write("rejects.csv", "id,v\n1,corrected\n")
	f = conformance.Try(Reopen(dir, headers, kept)).Must(t)
	reject(t, f, 0, "3,worse\n")
	must(t, f.Close())
	for _, name := range own {
		conformance.Equal(t, read(t, filepath.Join(dir, name)), "the user's", "%s", name)
	}
	for name, want := range map[string]string{"rejects.edited-1.csv": "id,v\n1,corrected\n",
		"rejects.csv": "id,v\n3,worse\n", "rejects-2.later-1.csv": "x,y\n2,later\n"} {
		conformance.Equal(t, read(t, filepath.Join(dir, name)), want, "%s", name)
	}
	want := []string{filepath.Join(dir, "rejects.csv"), filepath.Join(dir, "rejects.edited-1.csv"),
		filepath.Join(dir, ReasonsFile)}
	conformance.Same(t, f.RejectsFiles(), want, "files of rejects")

	// An attempt that moved a file aside and was killed before its first checkpoint leaves none with the first name.
	must(t, os.Remove(filepath.Join(dir, "rejects.csv")))
	f = conformance.Try(Reopen(dir, headers, kept)).Must(t)
	must(t, f.Close())
}

func TestChangedReasonsAreRefused(t *testing.T) {
	dir := t.TempDir()
	headers := []Header{{Text: []byte("id,v\n")}}
	f := conformance.Try(Create(dir, headers)).Must(t)
	reject(t, f, 0, "1,bad\n")
	must(t, f.Close())
	kept := f.Kept()
	text := []byte(read(t, filepath.Join(dir, ReasonsFile)))
	text[3] ^= 1
	must(t, os.WriteFile(filepath.Join(dir, ReasonsFile), text, 0o644))
	conformance.Refused(t, conformance.ErrorOf(Reopen(dir, headers, kept)), "", "changed reasons are taken as the run's")
}

func TestAJournalContinuesAtTheLengthThatWasKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := conformance.Try(OpenJournal(path, 0)).Must(t)
	for _, text := range []string{"kept;", "lost;"} {
		must(t, j.Append([]byte(text)))
	}
	conformance.Equal(t, j.Length(), 10, "length")
	conformance.Equal(t, j.Path(), path, "path")
	must(t, j.Close())
	j = conformance.Try(OpenJournal(path, 5)).Must(t)
	must(t, j.Append([]byte("again;")))
	err := j.Read(func(r *bufio.Reader) error {
		text, err := io.ReadAll(r)
		conformance.Equal(t, string(text), "kept;again;", "it reads %q", text)
		return err
	})
	must(t, err)
	must(t, j.Append([]byte("end")))
	must(t, j.Close())
	text, err := os.ReadFile(path)
	conformance.True(t, err == nil && string(text) == "kept;again;end", "%q, %v", text, err)
}

func TestShortenedJournalIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	must(t, os.WriteFile(path, []byte("1234"), 0o644))
	conformance.Refused(t, conformance.ErrorOf(OpenJournal(path, 5)), "changed meanwhile", "error")
	text, _ := os.ReadFile(path)
	conformance.Equal(t, string(text), "1234", "it is touched: %q", text)
	conformance.Refused(t, conformance.ErrorOf(OpenJournal(filepath.Join(path, "below"), 0)), "",
		"a journal below a file is opened")
}

func TestAJournalThatCannotBeWrittenSaysSo(t *testing.T) {
	j := conformance.Try(OpenJournal(filepath.Join(t.TempDir(), "journal"), 0)).Must(t)
	j.file.Close()
	conformance.Refused(t, j.Append(make([]byte, 1<<20)), "", "a megabyte is appended to a closed file")
	conformance.Refused(t, j.Close(), "", "it is closed without an error")
}

func TestAnArchiveContinuesAtItsLengths(t *testing.T) {
	run, dir := t.TempDir(), filepath.Join(t.TempDir(), "old")
	headers := []Header{{Text: []byte("id,v\n")}, {Kind: ".ndjson"}}
	a := conformance.Try(OpenArchive(run, headers, nil)).Must(t)
	add := func(table string, header int, record string) {
		t.Helper()
		must(t, a.Add(dir, table, header, []byte(record)))
	}
	add("t1", 0, "1,a\n")
	add("t1", 1, "{}\n")
	kept := maps.Clone(a.Lengths())
	add("t1", 0, "2,b") // the last record of its file
	add("t2", 0, "3,c\n")
	must(t, a.Close())
	conformance.Equal(t, read(t, filepath.Join(dir, "t1.csv")), "id,v\n1,a\n2,b\n", "contents read")
	a = conformance.Try(OpenArchive(run, headers, kept)).Must(t)
	_, err := os.Stat(filepath.Join(dir, "t2.csv"))
	conformance.True(t, os.IsNotExist(err), "a file that no checkpoint knows is still there: %v", err)
	add("t1", 0, "2,b\n")
	add("t2", 0, "3,c\n")
	conformance.Equal(t, len(a.Paths()), 3, "paths")
	must(t, a.Close())
	for name, want := range map[string]string{"t1.csv": "id,v\n1,a\n2,b\n", "t1.jsonl": "{}\n", "t2.csv": "id,v\n3,c\n"} {
		conformance.Equal(t, read(t, filepath.Join(dir, name)), want, "%s", name)
	}
}

func TestEachRunHasItsOwnArchiveFiles(t *testing.T) {
	dir := t.TempDir()
	for _, record := range []string{"first\n", "second\n"} {
		a := conformance.Try(OpenArchive(t.TempDir(), []Header{{}}, nil)).Must(t)
		must(t, a.Add(dir, "t", 0, []byte(record)))
		must(t, a.Close())
	}
	a, b := read(t, filepath.Join(dir, "t.csv")), read(t, filepath.Join(dir, "t-2.csv"))
	conformance.True(t, a == "first\n" && b == "second\n", "%q and %q", a, b)
}

func TestTruncatedArchiveIsAnError(t *testing.T) {
	run, dir := t.TempDir(), t.TempDir()
	a := conformance.Try(OpenArchive(run, []Header{{}}, nil)).Must(t)
	must(t, a.Add(dir, "t", 0, []byte("record\n")))
	lengths := a.Lengths()
	must(t, a.Close())
	must(t, os.Truncate(filepath.Join(dir, "t.csv"), 3))
	conformance.Refused(t, conformance.ErrorOf(OpenArchive(run, []Header{{}}, lengths)), "", "it goes on")
}
