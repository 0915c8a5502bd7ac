package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/rundir"
)

// aRun makes a run folder below rundir.Root that says it is running.
func aRun(t *testing.T, name string, job *checkpoint.Job) string {
	t.Helper()
	folder := filepath.Join(rundir.Root, name)
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, rundir.SummaryFile), []byte(`{"state": "running"}`), 0o644))
	must(t, job.Write(folder))
	return folder
}

func TestARunThatWasKilledBeforeItsFirstCheckpointIsResumed(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := aRun(t, "killed", &checkpoint.Job{Args: []string{"load", "in.csv"}})
	for _, given := range []string{folder, ""} {
		r, err := runToResume(given)
		if err != nil || r.State != stateCrashed || r.Folder != folder {
			t.Errorf("resume %q: %+v, %v", given, r, err)
		}
	}
	lock, err := rundir.TakeLock(folder)
	must(t, err)
	defer lock.Release()
	if r, err := runToResume(""); err == nil {
		t.Errorf("an active run is resumed: %+v", r)
	}
}

func TestARunThatWasStartedOverIsNotResumed(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := aRun(t, "old", &checkpoint.Job{Args: []string{"load", "in.csv"}, ReplacedBy: "tsimport-runs/new"})
	if _, err := runToResume(folder); err == nil || !strings.Contains(err.Error(), "tsimport-runs/new") {
		t.Errorf("%v", err)
	}
	if r, err := runToResume(""); err == nil {
		t.Errorf("%+v", r)
	}
}
