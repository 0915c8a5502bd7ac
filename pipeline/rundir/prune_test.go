package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// finished makes a folder with files of a run.
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
	if removed, err := Remove(dir, yes, SummaryFile); !removed || err != nil {
		t.Errorf("%v, %v", removed, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

func TestARunThatIsNeededOrLinkedIsNotRemoved(t *testing.T) {
	dir := finished(t, "run.json")
	if removed, err := Remove(dir, func() bool { return false }); removed || err != nil {
		t.Errorf("no longer as it was: %v, %v", removed, err)
	}
	l, err := TakeLock(dir)
	must(t, err)
	if removed, err := Remove(dir, yes); removed || !errors.As(err, new(*HeldError)) {
		t.Errorf("held: %v, %v", removed, err)
	}
	must(t, l.Release())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	if removed, err := Remove(link, yes); removed || err == nil {
		t.Errorf("a link: %v, %v", removed, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
		t.Error(err)
	}
}

// What says that the folder is a run's goes last, and what a link leads to stays.
func TestARunThatIsRemovedInPartIsStillARun(t *testing.T) {
	dir, outside := finished(t, "run.json"), finished(t, "precious")
	must(t, os.Symlink(outside, filepath.Join(dir, "dt=1")))
	_, err := Remove(dir, func() bool {
		return os.Mkdir(filepath.Join(dir, "a"), 0o700) == nil && os.Remove(filepath.Join(dir, "run.json")) == nil
	}, "../escapes", SummaryFile)
	if err == nil {
		t.Fatal("a name that leads out is removed")
	}
	if _, err := os.Stat(filepath.Join(dir, SummaryFile)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Error(err)
	}
	if removed, err := Remove(dir, yes, SummaryFile); !removed || err != nil {
		t.Errorf("again: %v, %v", removed, err)
	}
}

func TestWhatIsInARunFolderIsItsOwnOrForeign(t *testing.T) {
	none := func(string, bool) bool { return false }
	dir := finished(t, "run.json", "report.html", "rejects.jsonl", "rejects-2.csv", "rejects.index", "repeated.bin", "archived.jsonl", "lock.holder", "summary.json.part",
		"attempt-1/rejects.csv", "dt=2026/rejects.csv", "stamps/0001", "attempt-2/stamps/0001", "checkpoint.prev")
	c, err := ContentsOf(dir, none)
	if err != nil || c.Foreign != "" || c.Bytes != 16*4 || c.Newest.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	for _, name := range []string{"notes.txt", "rejects.fixed.csv", "rejects.edited-1.csv", "attempt-1/notes.txt", "put/run.json", "attempt-x/run.json", "summary.json.bak", "job.json"} {
		if c, err := ContentsOf(finished(t, name), none); err != nil || c.Foreign == "" || !strings.HasPrefix(name, filepath.ToSlash(c.Foreign)) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	own := func(name string, folder bool) bool { return name == "put" && folder }
	if c, err := ContentsOf(finished(t, "put/run.json"), own); err != nil || c.Foreign != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := ContentsOf(filepath.Join(dir, "missing"), none); err == nil {
		t.Error("a folder that is missing")
	}
}

func TestARunFolderIsKnownByItsFiles(t *testing.T) {
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
	if !IsRoot("./"+Root) || IsRoot(".") || IsRoot("none") {
		t.Error("the folder of runs is not told from others")
	}
}
