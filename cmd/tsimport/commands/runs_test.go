package commands

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/options"
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

// What concerns the machine comes from the command that resumes; what was asked for, from the run.
func TestAResumedRunTakesTheFlagsOfItsMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,n\na,1\n")
	asked := &options.Command{Name: "load", Request: options.Request{From: []string{"in.csv"}, Table: "t"}}
	asked.Create, asked.PK = true, []string{"id"}
	aRun(t, "killed", &checkpoint.Job{Args: []string{"load", "in.csv"}, Request: written(asked)})
	for variable, want := range map[string]string{
		"TSIMPORT_RETRY_FOR": `TSIMPORT_RETRY_FOR: --retry-for "soon": want a duration with a unit`, "TSIMPORT_MAX_WCU": `TSIMPORT_MAX_WCU: --max-wcu "soon": want a number`,
		"TSIMPORT_CONCURRENCY": `--concurrency "soon": want a whole number`,
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "soon")
			var said bytes.Buffer
			if code := Run([]string{"tsimport", "resume"}, io.Discard, &said); code != 2 || !strings.Contains(said.String(), want) {
				t.Errorf("exit code %d, %s", code, &said)
			}
		})
	}
	for _, tt := range []struct {
		flags, says string
		code        int
	}{
		{"--quiet --memory 1MiB", "--memory 1MiB: a load needs 16MiB at least", 2},
		{"--quiet --status nowhere", "--status nowhere", 2},
		{"--quiet --memory 64MiB --concurrency 2", "", 0},
	} {
		var said bytes.Buffer
		code := Run(append([]string{"tsimport", "resume"}, strings.Fields(tt.flags)...), io.Discard, &said)
		if code != tt.code || !strings.Contains(said.String(), tt.says) || tt.says == "" && said.Len() > 0 {
			t.Errorf("resume %s: exit code %d, %s", tt.flags, code, &said)
		}
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

func TestAJobSaysWhatWasVerifiedAndRejected(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,n\n1,1\nx,2\n")
	put(t, "job.yaml", "version: 1\nloads:\n  a: {from: in.csv, pk: 'id:integer', create: true, verify: true}\n  b: {from: in.csv, pk: 'id:integer', create: true}\n")
	var said, out bytes.Buffer
	if code := Run([]string{"tsimport", "run", "job.yaml"}, io.Discard, &said); code != 3 || !strings.Contains(said.String(), "\ntsimport: 1 load verified, 0 rows differ\n") {
		t.Errorf("exit code %d:\n%s", code, &said)
	}
	if code := Run([]string{"tsimport", "runs"}, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "2 of 2 loads done, 4 of 4 rows final, 2 rejected") {
		t.Errorf("exit code %d:\n%s", code, &out)
	}
}
