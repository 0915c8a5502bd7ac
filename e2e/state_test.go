//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/internal/objectstore/storetest"
)

func TestAnotherMachineResumesFromTheState(t *testing.T) {
	t.Parallel()
	around := &surroundings{T: t}
	store := storetest.New(around, "states")
	s := startServe(t)
	const rows = 5000
	drop := newPlace(t)
	drop.write("a.csv", fileOf("id,v", rows, func(i int) string { return fmt.Sprintf("%d,x%d", i, i) })+"bad\n")
	args := func(more ...string) []string {
		return append([]string{"load", drop.dir, "--table", "nights", "--pk", "id", "--create", "--only-new", "--state", "s3://states/all"}, more...)
	}
	first := s.pod(t, around.env...).start(args("--max-rows-per-second", "200")...)
	first.must(func() bool { // checkpoints in the state
		kept := 0
		for _, r := range store.Requests() {
			if strings.HasPrefix(r, "PUT ") && strings.Contains(r, "/checkpoint.") {
				kept++
			}
		}
		return kept >= 2
	})
	first.signal(os.Interrupt)
	if code := first.wait(); code != 130 {
		t.Fatalf("exit code %d: %s", code, &first.said)
	}
	drop.write("b.csv", "id,v\n-1,later\n") // what comes meanwhile is not of that run
	second := s.pod(t, around.env...)
	second.ends(3, args(), "resuming run", "5,001 read, 5,000 written, 1 rejected")
	second.ends(0, args(), "1 of 2 inputs are known", "1 read, 1 written")
	second.ends(0, args(), "nothing new")
	if rejects := second.glob("tsimport-runs/*/rejects.csv"); len(rejects) != 1 {
		t.Errorf("rejects: %q", rejects)
	}
	if said := second.run(0, "files", "--table", "nights", "--state", "s3://states/all"); strings.Count(said, ".csv") != 2 {
		t.Errorf("files: %s", said)
	}
}

func TestAStateThatCannotKeepALoadIsRefusedBeforeTheFirstRow(t *testing.T) {
	for want, change := range map[string]func(*storetest.Server){
		"conditional puts have no effect there": func(s *storetest.Server) { s.Unconditional = true },
		"cannot be written to":                  func(s *storetest.Server) { s.ReadOnly = true },
		"is full":                               func(s *storetest.Server) { s.Full = true },
		"newer version": func(s *storetest.Server) {
			s.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/lease.") {
					s.Set(strings.TrimPrefix(r.URL.Path, "/states/"), `{"version":9}`, time.Unix(1e9, 0))
				}
				return false
			}
		},
	} {
		store := storetest.New(t, "states")
		store.Change(change)
		p := startServe(t).pod(t)
		p.write("a.csv", "id\n1\n")
		if said := p.ends(2, strings.Fields("load a.csv --table t --pk id --create --state s3://states/x"), want); strings.Contains(said, "finished") {
			t.Error(said)
		}
	}
}

// What is damaged or newer stays so: schedulers are told not to try again. A store that does not answer may be there later.
func TestADamagedOrNewerStateIsRefusedByName(t *testing.T) {
	t.Parallel()
	p := startServe(t).pod(t)
	p.write("a.csv", "id\n1\n")
	load := func(code int, state, want string) {
		t.Helper()
		if said := p.ends(code, strings.Fields("load a.csv --table t --pk id --create --only-new --retry-for 1s --state "+state), want); code != 0 && (strings.Contains(said, "finished") || strings.Contains(said, "nothing new")) {
			t.Errorf("%s: %s", state, said)
		}
	}
	load(0, "whole", "finished")
	for object, name := range map[string]string{"known/*/lease.*1": "lease", "known/*/event.*1": "event", "loads/*/lease.*1": "lease", "loads/*/checkpoint.*2": "checkpoint"} {
		for text, want := range map[string]string{"\x00{": name + ".00000", `{"version":99}`: "was written by a newer version of tsimport; use that version"} {
			state := fmt.Sprint("state", len(p.glob("state*")))
			must(t, os.CopyFS(p.path(state), os.DirFS(p.path("whole"))))
			found := p.glob(filepath.Join(state, object))
			if len(found) != 1 {
				t.Fatalf("%s: %q", object, found)
			}
			must(t, os.WriteFile(found[0], []byte(text), 0o600))
			load(2, state, want)
		}
	}
	p.env = append(p.env, "AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=x", "AWS_EC2_METADATA_DISABLED=true")
	load(1, "s3://states/x", "s3://states/x") // a store that does not answer
}
