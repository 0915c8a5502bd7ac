package rundir

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"github.com/google/go-cmp/cmp"
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
	dir := filepath.Join(t.TempDir(), "g[1]*") // not a pattern
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

func TestTouchesCoversRunFiles(t *testing.T) {
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

func TestRunLockIsExclusive(t *testing.T) {
	dir := t.TempDir()
	lock := conformance.Try(TakeLock(dir)).Must(t)
	_, err := TakeLock(dir) // a second open file of this process acts as another process would
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

// When an unfinished run is resumed, no file that the user has created or changed in its folder is lost.
func TestResumeKeepsUserFiles(t *testing.T) {
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

	// If an attempt moves a file aside and is killed before its first checkpoint, the original name is unused.
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

func TestJournalContinuesAtKeptLength(t *testing.T) {
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

func TestJournalReportsWriteErrors(t *testing.T) {
	j := conformance.Try(OpenJournal(filepath.Join(t.TempDir(), "journal"), 0)).Must(t)
	j.file.Close()
	conformance.Refused(t, j.Append(make([]byte, 1<<20)), "", "a megabyte is appended to a closed file")
	conformance.Refused(t, j.Read(func(*bufio.Reader) error { return nil }), "", "it is read without what is not written")
	conformance.Refused(t, j.Close(), "", "it is closed without an error")
}

func TestArchiveContinuesAtKeptLengths(t *testing.T) {
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

func finished(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	for _, name := range append(names, SummaryFile, LockFile) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("text"), 0o644))
	}
	return dir
}

func yes() bool { return true }

func TestRunIsRemovedWithItsLock(t *testing.T) {
	dir := finished(t, "run.json", "rejects.csv", "attempt-1/summary.json", "dt=1/rejects.csv", "stamps/0001")
	removed, err := Remove(dir, yes, SummaryFile)
	conformance.True(t, removed && err == nil, "%v, %v", removed, err)
	conformance.Is(t, conformance.ErrorOf(os.Lstat(dir)), os.ErrNotExist, "the folder")
}

func TestNeededOrLinkedRunIsNotRemoved(t *testing.T) {
	dir := finished(t, "run.json")
	removed, err := Remove(dir, func() bool { return false })
	conformance.True(t, !removed && err == nil, "no longer as it was: %v, %v", removed, err)
	l := conformance.Try(TakeLock(dir)).Must(t)
	removed, err = Remove(dir, yes)
	conformance.True(t, !removed && errors.As(err, new(*HeldError)), "held: %v, %v", removed, err)
	must(t, l.Release())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	removed, err = Remove(link, yes)
	conformance.True(t, !removed && err != nil, "a link: %v, %v", removed, err)
	conformance.Must(t, conformance.ErrorOf(os.Stat(filepath.Join(dir, "run.json"))))
}

// The files that identify a run folder are removed last, and the targets of links are kept.
func TestPartlyRemovedRunIsStillARun(t *testing.T) {
	dir, outside := finished(t, "run.json"), finished(t, "precious")
	must(t, os.Symlink(outside, filepath.Join(dir, "dt=1")))
	_, err := Remove(dir, func() bool {
		return os.Mkdir(filepath.Join(dir, "a"), 0o700) == nil && os.Remove(filepath.Join(dir, "run.json")) == nil
	}, "../escapes", SummaryFile)
	conformance.MustTrue(t, err != nil, "a name that leads out is removed")
	conformance.Must(t, conformance.ErrorOf(os.Stat(filepath.Join(dir, SummaryFile))))
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error(err)
	}
	removed, err := Remove(dir, yes, SummaryFile)
	conformance.True(t, removed && err == nil, "again: %v, %v", removed, err)
}

func TestContentsDistinguishOwnAndForeignFiles(t *testing.T) {
	none := func(string, bool) bool { return false }
	dir := finished(t, "run.json", "report.html", "rejects.jsonl", "rejects-2.csv", "rejects.index", "repeated.bin",
		"archived.jsonl", "lock.holder", "summary.json.part",
		"attempt-1/rejects.csv", "dt=2026/rejects.csv", "stamps/0001", "attempt-2/stamps/0001", "checkpoint.prev")
	c, err := ContentsOf(dir, none)
	conformance.True(t, err == nil && c.Foreign == "" && c.Bytes == 16*4 && !c.Newest.IsZero(), "%+v, %v", c, err)
	for _, name := range []string{"notes.txt", "rejects.fixed.csv", "rejects.edited-1.csv", "attempt-1/notes.txt",
		"put/run.json", "attempt-x/run.json", "summary.json.bak", "job.json"} {
		c, err := ContentsOf(finished(t, name), none)
		conformance.True(t, err == nil && c.Foreign != "" && strings.HasPrefix(name, filepath.ToSlash(c.Foreign)),
			"%s: %+v, %v", name, c, err)
	}
	own := func(name string, folder bool) bool { return name == "put" && folder }
	c, err = ContentsOf(finished(t, "put/run.json"), own)
	conformance.True(t, err == nil && c.Foreign == "", "%+v, %v", c, err)
	conformance.Refused(t, conformance.ErrorOf(ContentsOf(filepath.Join(dir, "missing"), none)), "", "a missing folder")
}

func TestRunFolderIsRecognisedByItsFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"finished":               {map[string]string{SummaryFile: `{"state":"finished","run_dir":"r"}`}, true},
		"killed":                 {map[string]string{SummaryFile: `{"state":"running"}`, LockFile: ""}, true},
		"earlier attempt":        {map[string]string{SummaryFile: `{"state":"running"}`, "run.json": "{}"}, true},
		"without a summary":      {map[string]string{"run.json": "{}", ReasonsFile: ""}, true},
		"a summary of others":    {map[string]string{SummaryFile: `{"state":"NY"}`, "rows.csv": ""}, false},
		"not even an object":     {map[string]string{SummaryFile: `[1]`, LockFile: ""}, false},
		"a job of others":        {map[string]string{"run.json": "{}", "rows.csv": ""}, false},
		"rejects without a run":  {map[string]string{"rejects.csv": "a\n"}, false},
		"an empty folder":        {nil, false},
		"a summary with no file": {map[string]string{SummaryFile: `{"run_dir":"r"}`}, false},
	} {
		dir := t.TempDir()
		for file, text := range tt.files {
			must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		conformance.Equal(t, IsRun(dir), tt.want, "%s", name)
	}
	t.Chdir(t.TempDir())
	must(t, os.Mkdir(Root, 0o700))
	conformance.True(t, IsRoot("./"+Root) && !IsRoot(".") && !IsRoot("none"), "the folder of runs is not told from others")
}

func TestRunRoundTrip(t *testing.T) {
	dir := t.TempDir()
	f := conformance.Try(Create(dir, []Header{{Text: []byte("id\n")}})).Must(t)
	for _, r := range []struct {
		file   string
		record int64
	}{{"b.csv", 7}, {"a.csv", 900}, {"a.csv", 3}, {"a.csv", 40}} {
		must(t, f.Reject(0, table.Reject{Location: table.Location{Source: r.file, Record: r.record},
			Reason: table.Reason{Code: "X", Message: "new\nline"}, Raw: []byte("x\n")}))
	}
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, WriteSummary(f.Path, map[string]any{"arguments": []string{"load", "a b.csv"}, "directory": "/d",
		"started": started.Add(time.Hour), "first_started": started}))
	must(t, f.Close())
	got, err := ReadRun(dir)
	want := &Run{Arguments: []string{"load", "a b.csv"}, Directory: "/d", Started: started,
		Rejected: Rejected{"a.csv": {3, 40, 900}, "b.csv": {7}}}
	diff := cmp.Diff(want, got)
	conformance.True(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
	for record, rejected := range map[int64]bool{2: false, 3: true, 41: false, 900: true, 901: false} {
		conformance.True(t, got.Rejected.Has("a.csv", record) == rejected && !got.Rejected.Has("c.csv", record),
			"record %d of a.csv, rejected: %v", record, !rejected)
	}
}

func TestUnreadableRunIsAnError(t *testing.T) {
	dir := t.TempDir()
	conformance.Refused(t, conformance.ErrorOf(ReadRun(dir)), "", "a folder without a run is one")
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write(SummaryFile, "{")
	conformance.Refused(t, conformance.ErrorOf(ReadRun(dir)), SummaryFile, "half a summary")
	write(SummaryFile, `{"version":2}`)
	conformance.Refused(t, conformance.ErrorOf(ReadRun(dir)), "newer version", "a summary of another version")
	write(SummaryFile, `{"version":1}`)
	r, err := ReadRun(dir)
	conformance.True(t, err == nil && !r.Rejected.Has("a.csv", 1), "a run without rejects: %v", err)
	write(ReasonsFile, "{\"file\":\"a.csv\",\"record\":1}\n{\"file\":")
	conformance.Refused(t, conformance.ErrorOf(ReadRun(dir)), "line 2", "half a reject")
}

func TestReasonsAreCountedByCode(t *testing.T) {
	dir := t.TempDir()
	f := conformance.Try(Create(dir, []Header{{}})).Must(t)
	for i, code := range []string{"Type", "Range", "Range", "Type", "Range"} {
		r := table.Reject{Location: table.Location{Source: "a.csv", Record: int64(i + 1), Line: int64(i + 2)},
			Raw: []byte("x\n"), Reason: table.Reason{Column: "n", Code: code, Message: "not so", Value: "x"}}
		must(t, f.Reject(0, r))
	}
	must(t, f.Close())
	got := conformance.Try(CountReasons(dir)).Must(t)
	want := []ReasonCount{
		{"Range", 3, Reason{File: "a.csv", Record: 2, Line: 3, Column: "n", Code: "Range", Message: "not so", Value: "x"}},
		{"Type", 2, Reason{File: "a.csv", Record: 1, Line: 2, Column: "n", Code: "Type", Message: "not so", Value: "x"}},
	}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
	none, err := CountReasons(t.TempDir())
	conformance.True(t, none == nil && err == nil, "a run without rejects: %v, %v", none, err)
}

func TestRejectsAreSortedInInputOrder(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, []Header{{Text: []byte("id,n")}, {Text: []byte("x\n")}})
	must(t, err)
	var j *Journal // opened when the first record is rejected
	f.Index(nil, func() (_ *Journal, err error) {
		j, err = OpenJournal(filepath.Join(dir, RejectIndexFile), 0)
		return j, err
	}, map[string]int{"a.csv": 0, "b.csv": 1, "c.csv": 2})
	_, err = os.Stat(filepath.Join(dir, RejectIndexFile))
	conformance.True(t, os.IsNotExist(err), "there is an index of no rejects")
	reject := func(header int, source string, record int64, raw string) {
		t.Helper()
		must(t, f.Reject(header, table.Reject{Location: table.Location{Source: source, Record: record},
			Reason: table.Reason{Code: "x"}, Raw: []byte(raw)}))
	}
	reject(1, "c.csv", 2, "c2")
	reject(0, "b.csv", 9, "b9,\"two\nlines\"\n")
	reject(0, "a.csv", 30, "a30,")
	reject(1, "c.csv", 1, "c1\n")
	reject(0, "a.csv", 4, "a4,\n")
	must(t, f.Close())
	must(t, j.Close())
	sorted, err := f.SortRejects()
	conformance.MustTrue(t, sorted && err == nil, "%v %v", sorted, err)
	for name, want := range map[string]string{
		"rejects.csv":   "id,n\na4,\na30,\nb9,\"two\nlines\"\n",
		"rejects-2.csv": "x\nc1\nc2\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		conformance.True(t, err == nil && string(got) == want, "%s has %q, want %q, error %v", name, got, want, err)
	}
	var at []string
	must(t, EachReason(dir, func(r *Reason) { at = append(at, fmt.Sprint(r.File, r.Record)) }))
	conformance.Equal(t, strings.Join(at, " "), "a.csv4 a.csv30 b.csv9 c.csv1 c.csv2", "reasons")
	_, err = os.Stat(filepath.Join(dir, RejectIndexFile))
	conformance.True(t, os.IsNotExist(err), "the index is left: %v", err)
}
