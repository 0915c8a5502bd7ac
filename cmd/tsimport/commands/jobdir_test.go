package commands

import (
	"os"
	"strings"
	"testing"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

// serviceInEnvironment starts a service that the environment names.
func serviceInEnvironment(t *testing.T) {
	t.Helper()
	service := enginetest.Start(t)
	for name, value := range map[string]string{
		endpointEnv: service.URL, instanceEnv: service.Instance, "TABLESTORE_ACCESS_KEY_ID": service.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET": service.AccessKeySecret,
	} {
		t.Setenv(name, value)
	}
}

// TestWorkersRunTheLoadsOfAJob plans a job for many machines and runs it with one worker after another.
func TestWorkersRunTheLoadsOfAJob(t *testing.T) {
	serviceInEnvironment(t)
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,v\n1,x\n2,y\n")
	put(t, "b.csv", "id,v\n1,x\nbad\n3,z\n")
	const head = "version: 1\ndefaults: {pk: [id], create: true}\nloads:\n"
	put(t, "one.yaml", head+"  a: {from: [a.csv]}\n")
	for name, c := range map[string]struct{ job, want string }{
		"sync":    {head + "  a: {command: sync, from: [a.csv]}\n", "load a: --job-dir does not apply to sync"},
		"counter": {head + "  a: {from: [a.csv], mode: increment}\n", "load a: --job-dir: --mode increment"},
		"ceiling": {"version: 1\ndefaults: {pk: [id], max-wcu: 50}\nloads:\n  a: {from: [a.csv]}\n", "max-wcu for all loads together"},
	} {
		put(t, name+".yaml", c.job)
		conformance.Contains(t, tsimport(2, "run", name+".yaml", "--job-dir", name), c.want, "%s", name)
	}
	conformance.Contains(t, tsimport(2, "run", "one.yaml", "--workers", "2"), "--job-dir", "workers without a job directory")
	for flags, want := range map[string]string{
		"--fresh": "--fresh is for jobs that this process runs", "--parallel=2": "--parallel is for jobs", "--run-dir=r": "--run-dir is for jobs", "--workers=0": "--workers 0: want 1 to 4096",
	} {
		conformance.Contains(t, tsimport(2, "run", "one.yaml", "--job-dir=wrong", flags), want, "%s", flags)
	}
	conformance.Contains(t, tsimport(2, "run", "one.yaml", "--job-dir", ""), "no job directory", "an empty name")
	put(t, "job.yaml", head+"  b: {from: [b.csv], after: [a]}\n  a: {from: [a.csv]}\n  c: {from: [a.csv], order: none}\n")
	said := tsimport(0, "run", "job.yaml", "--job-dir", "job", "--workers", "2")
	conformance.Contains(t, said, "job: 3 loads; start on each machine", "what the plan says")
	tsimport(0, "run", "job.yaml", "--job-dir", "job", "--workers", "2")
	conformance.Contains(t, tsimport(2, "run", "one.yaml", "--job-dir", "job"), "the directory of another job", "another job")
	conformance.Contains(t, tsimport(0, "status", "job"), "b: open; 0 read", "the status before")
	conformance.Contains(t, tsimport(2, "status", "job", "--listen", "127.0.0.1:0"), "loads/a", "what can be watched")
	conformance.Contains(t, tsimport(0, "manifests", "job", "--image", "i", "--volume", "shared:/"), "completions: 2", "the manifest")

	put(t, "job/stop", "")
	conformance.Contains(t, tsimport(1, "work", "--job-dir", "job"), "the job was stopped", "a worker of a stopped job")
	said = tsimport(3, "resume", "job")
	conformance.Contains(t, said, "job done: 3 loads, 7 read, 6 written, 1 rejected", "how it ends")
	a, b := strings.Index(said, "working on load a"), strings.Index(said, "working on load b")
	conformance.True(t, a >= 0 && b >= a, "b was to be loaded after a:\n%s", said)
	conformance.Contains(t, tsimport(0, "work", "--job-dir", "job"), "the job's exit code is 3", "a worker that comes later")
	conformance.Contains(t, tsimport(0, "status", "job"), "b: finished (exit code 3); 3 read, 2 written, 1 rejected", "the status at the end")
	for table, rows := range map[string]string{"a": "2", "b": "2", "c": "2"} {
		conformance.Contains(t, tsimport(0, "table", "count", table), rows+"\n", "%s", table)
	}
	put(t, "limits.yaml", head+"  d: {from: [b.csv], max-errors: 0}\n  e: {from: [a.csv]}\n")
	tsimport(0, "run", "limits.yaml", "--job-dir", "limits")
	put(t, "limits/loads/e/stop", "")
	said = tsimport(1, "work", "--job-dir", "limits")
	conformance.True(t, strings.HasSuffix(strings.TrimSpace(said), "/limits") && strings.Count(said[strings.LastIndex(said, "tsimport:"):], "; see") == 1, "%s", said)
	tsimport(4, "resume", "limits")
	conformance.Contains(t, tsimport(0, "status", "limits"), "e: finished", "what was continued beside a load with too many rejects")
	put(t, "limits.yaml", head+"  d: {from: [b.csv], max-errors: 1}\n  e: {from: [a.csv]}\n  f: {from: [a.csv]}\n")
	conformance.Contains(t, tsimport(2, "run", "limits.yaml", "--job-dir", "limits"), "with other loads", "a job that has a load more")
	put(t, "limits.yaml", head+"  d: {from: [b.csv], max-errors: 1}\n  e: {from: [a.csv]}\n")
	conformance.Contains(t, tsimport(0, "status", "limits"), "d: stopped", "before the limit is raised")
	tsimport(0, "run", "limits.yaml", "--job-dir", "limits")
	conformance.Contains(t, tsimport(0, "status", "limits"), "d: open", "with a higher limit")
	tsimport(3, "work", "--job-dir", "limits")
	conformance.Refused(t, conformance.ErrorOf(os.Stat(defaultStore)), "no such file", "an embedded store was made")
}
