package rundir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

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

func TestARunIsRemovedWithItsLock(t *testing.T) {
	dir := finished(t, "run.json", "rejects.csv", "attempt-1/summary.json", "dt=1/rejects.csv", "stamps/0001")
	removed, err := Remove(dir, yes, SummaryFile)
	conformance.True(t, removed && err == nil, "%v, %v", removed, err)
	conformance.Is(t, conformance.ErrorOf(os.Lstat(dir)), os.ErrNotExist, "the folder")
}

func TestARunThatIsNeededOrLinkedIsNotRemoved(t *testing.T) {
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

// The files that identify a run folder go last, and the targets of links stay.
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

func TestARunThatCannotBeReadIsAnError(t *testing.T) {
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

func TestReasonsAreCountedByCodeWithTheFirstOfEach(t *testing.T) {
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

func TestRejectsAreSortedByTheirPlaceInTheInputs(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, []Header{{Text: []byte("id,n")}, {Text: []byte("x\n")}})
	must(t, err)
	var j *Journal // which is opened at the first record that is rejected
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
