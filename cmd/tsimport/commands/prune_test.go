package commands

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
)

func command(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := Run(append([]string{"tsimport"}, args...), &out, &errOut); code != want {
		t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, want, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

// ends runs a command line, which must end with the exit code and print the texts.
func ends(t *testing.T, code int, line string, texts ...string) (said string) {
	t.Helper()
	stdout, stderr := command(t, code, strings.Fields(line)...)
	holds(t, stdout+stderr, texts...)
	return stdout + stderr
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// age makes all files below a folder, and the times in its summary, older by by.
func age(t *testing.T, folder string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	must(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if base := d.Name(); base == rundir.SummaryFile || base == "run.json" || base == "job.json" {
			var fields map[string]json.RawMessage
			must(t, json.Unmarshal(conformance.Try(os.ReadFile(name)).Must(t), &fields))
			for _, key := range []string{"started", "first_started"} {
				if _, ok := fields[key]; ok {
					fields[key], _ = json.Marshal(then)
				}
			}
			must(t, os.WriteFile(name, conformance.Try(json.Marshal(fields)).Must(t), 0o600))
		}
		return os.Chtimes(name, then, then)
	}))
}

// newRun loads a file into a table and returns the run's folder, which it makes older.
func newRun(t *testing.T, name string, code int, by time.Duration, args ...string) string {
	t.Helper()
	folder := filepath.Join(rundir.Root, name)
	command(t, code, append(strings.Fields("load -q --sync none --pk id:integer --run-dir "+folder), args...)...)
	age(t, folder, by)
	return folder
}

func pruneJSON(t *testing.T, args ...string) (removed []string, kept map[string]string) {
	t.Helper()
	out, _ := command(t, 0, append([]string{"runs", "prune", "--json"}, args...)...)
	var all []pruned
	must(t, json.Unmarshal([]byte(out), &all))
	kept = map[string]string{}
	for _, r := range all {
		if name := filepath.Base(r.Folder); r.Removed {
			removed = append(removed, name)
		} else {
			kept[name] = r.Why
		}
	}
	slices.Sort(removed)
	return removed, kept
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

const day = 24 * time.Hour

func TestPruneKeepsTheNewestRunsOfEachTable(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id\n1\n2\n")
	for i, name := range []string{"a1", "a2", "a3", "a4"} {
		newRun(t, name, 0, time.Duration(50-10*i)*day, "in.csv", "-t", "a") // 50, 40, 30 and 20 days
	}
	newRun(t, "b1", 0, 90*day, "in.csv", "-t", "b")
	newRun(t, "dry", 0, 90*day, "in.csv", "-t", "a", "--dry-run")
	put(t, "job.yaml", "version: 1\nloads:\n  c: {from: [in.csv], pk: [id]}\n")
	for _, name := range []string{"j1", "j2"} {
		command(t, 0, "run", "job.yaml", "-q", "--run-dir", filepath.Join(rundir.Root, name))
		age(t, filepath.Join(rundir.Root, name), 60*day)
	}
	age(t, filepath.Join(rundir.Root, "j1"), 61*day)

	_, stderr := command(t, 2, "load", "--retry-rejects", filepath.Join(rundir.Root, "j1"))
	const isJob = "the folder of a job; give one of its loads, such as tsimport-runs/j1/c"
	conformance.Contains(t, stderr, isJob, "stderr")
	_, stderr = command(t, 2, "verify", "--run", filepath.Join(rundir.Root, "j1"))
	conformance.Contains(t, stderr, isJob, "stderr")
	_, stderr = command(t, 2, "runs", "prune")
	conformance.Contains(t, stderr, "give --older-than 30d, --keep N, or both", "stderr")
	for _, bad := range [][]string{{"--keep", "0"}, {"--older-than", "month"}, {"--older-than", "-1d"},
		{"--older-than", "1d", "a1"}} {
		command(t, 2, append([]string{"runs", "prune"}, bad...)...)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--older-than", "45d"}, "a1 j1"},
		{[]string{"--older-than", "720h"}, "a1 a2 a3 j1"},
		{[]string{"--keep", "1"}, "a1 a2 a3 j1"},
		{[]string{"--keep", "3"}, "a1"},
		{[]string{"--keep", "2", "--older-than", "45d"}, "a1"},
	} {
		if removed, kept := pruneJSON(t, append(tt.args, "--plan")...); strings.Join(removed, " ") != tt.want {
			t.Errorf("%v: would remove %v, want %s; kept %v", tt.args, removed, tt.want, kept)
		}
	}
	conformance.MustEqual(t, exists(filepath.Join(rundir.Root, "a1")), true, "a plan removed a run")
	edited := filepath.Join(rundir.Root, "a1")
	must(t, os.Chtimes(filepath.Join(edited, rundir.SummaryFile), time.Now(), time.Now()))
	removed, kept := pruneJSON(t, "--keep", "1", "--plan")
	conformance.Equal(t, strings.Join(removed, " "), "a2 a3 j1", "an edited run beside the newest: kept %v", kept)
	age(t, edited, 50*day)
	before, _ := command(t, 0, "runs", "prune", "--older-than", "35d", "--plan")
	after, _ := command(t, 0, "runs", "prune", "--older-than", "35d")
	conformance.True(t, strings.ReplaceAll(before, "would remove", "removed") == after &&
		strings.Contains(after, "removed 3 of 8 runs"), "planned:\n%sdone:\n%s", before, after)
	for name, there := range map[string]bool{"a1": false, "a2": false, "a3": true, "a4": true, "b1": true, "dry": true,
		"j1": false, "j2": true} {
		conformance.Equal(t, exists(filepath.Join(rundir.Root, name)), there, "%s is there: %v", name, !there)
	}
	// The remaining runs still provide the table's types and the list.
	newRun(t, "a5", 0, 0, "in.csv", "-t", "a")
	out, _ := command(t, 0, "runs")
	conformance.Equal(t, strings.Count(out, "\n"), 6, "%v", out)
}

func TestNeededRunsAreKept(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, "in.csv", "id\n1\n2\n")
	put(t, "bad.csv", "id\n1\nx\n")
	root := rundir.Root
	newRun(t, "resumable", 4, 90*day, "bad.csv", "-t", "r", "--max-errors", "0")
	put(t, "job.yaml", "version: 1\nloads:\n  good: {from: [in.csv], pk: [\"id:integer\"]}\n  bad: {from: [bad.csv], "+
		"pk: [\"id:integer\"], max-errors: 0}\n")
	command(t, 4, "run", "job.yaml", "-q", "--run-dir", filepath.Join(root, "job"))
	age(t, filepath.Join(root, "job"), 90*day)
	for _, name := range []string{"held", "notes", "link", "crashed", "future", "edited", "cut", "ok"} {
		newRun(t, name, 0, 90*day, "in.csv", "-t", "t")
	}
	newRun(t, "nothing", 4, 70*day, "bad.csv", "-t", "t", "--max-errors", "0")
	command(t, 0, strings.Fields("load -q --sync none in.csv -t t --pk id:integer --run-dir "+root+"/newest")...)

	must(t, os.Rename(newRun(t, "outside", 0, 90*day, "in.csv", "-t", "t"), "outside"))
	lock := conformance.Try(rundir.TakeLock(filepath.Join(root, "held"))).Must(t)
	defer lock.Release()
	put(t, filepath.Join(root, "notes", "notes.txt"), "mine")
	put(t, "elsewhere/precious.txt", "mine")
	must(t, os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(root, "link", "rejects.csv")))
	put(t, filepath.Join(root, "edited", "rejects.csv"), "id\n2\n") // a moment ago
	summary := filepath.Join(root, "crashed", rundir.SummaryFile)
	text := conformance.Try(os.ReadFile(summary)).Must(t)
	put(t, summary, strings.Replace(string(text), `"finished"`, `"running"`, 1))
	age(t, filepath.Join(root, "crashed"), 90*day)
	age(t, filepath.Join(root, "future"), -10*day)
	// A partially removed run can be removed.
	for _, name := range []string{"run.json", "report.html"} {
		must(t, os.Remove(filepath.Join(root, "cut", name)))
	}

	// These are not runs of tsimport.
	put(t, filepath.Join(root, "theirs", "summary.json"), `{"state":"finished"}`)
	put(t, filepath.Join(root, "empty.txt"), "a file")
	put(t, filepath.Join(root, ".hidden", "summary.json"), string(text))
	must(t, os.Mkdir(filepath.Join(root, "folder"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, "outside"), filepath.Join(root, "linked")))

	listed, kept := pruneJSON(t, "--older-than", "30d", "--plan")
	removed, _ := pruneJSON(t, "--older-than", "30d")
	got := strings.Join(removed, " ")
	conformance.True(t, got == "cut ok" && slices.Equal(removed, listed), "removed %v, planned %v", removed, listed)
	for name, why := range map[string]string{
		"resumable": "it can be resumed", "job": "it can be resumed", "held": "a process works on it",
		"notes": "notes.txt was not written by tsimport", "link": "rejects.csv",
		"edited": "not old enough", "crashed": "it can be resumed", "future": "one of the newest",
		"nothing": "it can be resumed", "newest": "not old enough",
	} {
		conformance.Contains(t, kept[name], why, "%s: kept", name)
		conformance.Equal(t, exists(filepath.Join(root, name)), true, "%s is gone", name)
	}
	for _, name := range []string{"theirs/summary.json", "empty.txt", ".hidden/summary.json", "folder", "linked",
		"../outside/summary.json", "../elsewhere/precious.txt", "link/rejects.csv"} {
		conformance.Equal(t, exists(filepath.Join(root, name)), true, "%s is gone", name)
	}
	// The job can still be resumed, with a higher limit.
	command(t, 3, "run", "job.yaml", "-q", "--max-errors", "5", "--run-dir", filepath.Join(root, "job"))
}

func TestRunIsKeptWhileAnotherReadsItsRejects(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "bad.csv", "id\n1\nx\ny\n")
	put(t, "in.csv", "id\n1\n")
	for _, name := range []string{"by-flag", "by-name", "by-job", "free"} {
		newRun(t, name, 3, 90*day, "bad.csv", "-t", strings.ReplaceAll(name, "-", "_"))
		newRun(t, name+"-newer", 0, 80*day, "in.csv", "-t", strings.ReplaceAll(name, "-", "_"))
	}
	command(t, 4, "load", "-q", "--sync", "none", "--retry-rejects", filepath.Join(rundir.Root, "by-flag"), "--max-errors",
		"0", "--run-dir", filepath.Join(rundir.Root, "flag"))
	newRun(t, "name", 4, 0, filepath.Join(rundir.Root, "by-name", "rejects*.csv"), "-t", "name", "--max-errors", "0")
	put(t, "job.yaml", "version: 1\nloads:\n  j: {from: [./tsimport-runs/by-job/rejects.csv], pk: [\"id:integer\"], "+
		"max-errors: 0}\n")
	command(t, 4, "run", "job.yaml", "-q", "--run-dir", filepath.Join(rundir.Root, "job"))
	removed, kept := pruneJSON(t, "--older-than", "30d")
	conformance.True(t, strings.Join(removed, " ") == "free" &&
		strings.Contains(kept["by-flag"], "flag, which can be resumed, reads") && kept["by-name"] != "" &&
		kept["by-job"] != "", "removed %v, kept %v", removed, kept)
}

func TestRunDatedInTheFutureIsNotOld(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id\n1\n")
	newRun(t, "ahead", 0, -2*day, "in.csv", "-t", "t")
	newRun(t, "far-ahead", 0, -3*day, "in.csv", "-t", "t")
	newRun(t, "last", 0, -4*day, "in.csv", "-t", "t")
	removed, kept := pruneJSON(t, "--older-than", "0s")
	conformance.True(t, len(removed) == 0 && strings.Contains(kept["ahead"], "in the future"), "%v kept %v", removed, kept)
}

func TestMistypedPruneIsNotTakenForAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	_, stderr := command(t, 2, "runs", "prun", "--older-than", "1d")
	conformance.True(t, strings.Contains(stderr, "older-than"), "%v", stderr)
	_, stderr = command(t, 2, "runs", "prun")
	conformance.True(t, strings.Contains(stderr, "did you mean prune?"), "%v", stderr)
	_, stderr = command(t, 2, "runs", "elsewhere")
	conformance.Contains(t, stderr, "no such file", "a missing folder")
}

func TestLastRunThatWroteToATableIsKept(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,v\n1,a\n")
	put(t, "empty.csv", "id,v\n")
	newRun(t, "wrote-first", 0, 90*day, "in.csv", "-t", "t")
	newRun(t, "wrote", 0, 80*day, "in.csv", "-t", "t")
	newRun(t, "nothing", 0, 70*day, "empty.csv", "-t", "t")
	removed, kept := pruneJSON(t, "--older-than", "30d")
	conformance.True(t, strings.Join(removed, " ") == "wrote-first" &&
		strings.Contains(kept["wrote"], "the last run that wrote"), "removed %v, kept %v", removed, kept)
}

func aRun(t *testing.T, name string, job *checkpoint.Job) string {
	t.Helper()
	folder := filepath.Join(rundir.Root, name)
	must(t, os.MkdirAll(folder, 0o755))
	must(t, rundir.WriteSummary(folder, map[string]string{"state": "running"}))
	must(t, job.Write(folder))
	return folder
}

func TestRunKilledBeforeItsFirstCheckpointIsResumed(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := aRun(t, "killed", &checkpoint.Job{Args: []string{"load", "in.csv"}})
	for _, given := range []string{folder, ""} {
		r, err := runToResume(given)
		conformance.True(t, err == nil && r.State == stateCrashed && r.Folder == folder, "resume %q: %+v, %v", given, r, err)
	}
	lock := conformance.Try(rundir.TakeLock(folder)).Must(t)
	defer lock.Release()
	for _, line := range []string{"resume", "resume " + folder} {
		ends(t, 1, line, "run "+folder+" is worked on by process ")
	}
}

// The settings of the machine come from the resuming command, all others from the run.
func TestResumedRunUsesTheMachinesFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,n\na,1\n")
	asked := &options.Command{Name: "load", Request: options.Request{From: []string{"in.csv"}, Table: "t"}}
	asked.Create, asked.PK = true, []string{"id"}
	aRun(t, "killed", &checkpoint.Job{Args: []string{"load", "in.csv"}, Request: written(asked)})
	for variable, want := range map[string]string{
		"TSIMPORT_RETRY_FOR":   `TSIMPORT_RETRY_FOR: --retry-for "soon": want a duration with a unit`,
		"TSIMPORT_MAX_WCU":     `TSIMPORT_MAX_WCU: --max-wcu "soon": want a number`,
		"TSIMPORT_CONCURRENCY": `--concurrency "soon": want a whole number`,
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "soon")
			ends(t, 2, "resume", want)
		})
	}
	for _, tt := range []struct {
		flags, says string
		code        int
	}{
		{"--quiet --memory 1MiB", "--memory 1MiB: a load needs at least 16MiB", 2},
		{"--quiet --status nowhere", "--status nowhere", 2},
		{"--quiet --memory 64MiB --concurrency 2", "", 0},
	} {
		said := ends(t, tt.code, "resume "+tt.flags, tt.says)
		conformance.True(t, tt.says != "" || said == "", "resume %s says %s", tt.flags, said)
	}
}

func TestRunThatWasStartedOverIsNotResumed(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := aRun(t, "old", &checkpoint.Job{Args: []string{"load", "in.csv"}, ReplacedBy: "tsimport-runs/new"})
	conformance.Refused(t, conformance.ErrorOf(runToResume(folder)), "tsimport-runs/new", "error")
	r, err := runToResume("")
	conformance.True(t, err != nil, "%+v", r)
}

func TestJobReportsVerifiedAndRejectedRows(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,n\n1,1\nx,2\n")
	put(t, "job.yaml", "version: 1\nloads:\n  a: {from: in.csv, pk: 'id:integer', create: true, verify: true}\n  b: "+
		"{from: in.csv, pk: 'id:integer', create: true}\n")
	ends(t, 3, "run job.yaml", "\ntsimport: 1 load verified, 0 rows differ\n")
	ends(t, 0, "runs", "2 of 2 loads done, 4 of 4 rows final, 2 rejected, exit code 3")
}
