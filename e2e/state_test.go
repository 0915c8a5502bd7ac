//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestAnotherMachineResumesFromTheState when the first was killed, with its working folder gone. States that are full, damaged, newer or ignore
// conditions are refused by internal/jobdir.
func TestAnotherMachineResumesFromTheState(t *testing.T) {
	t.Parallel()
	s, around := startServe(t), newPlace(t)
	store := around.bucket(t, "states")
	const rows = 5000
	drop := newPlace(t)
	drop.write("a.csv", fileOf("id,v", rows, func(i int) string { return fmt.Sprintf("%d,x%d", i, i) })+"bad\n")
	args := func(more ...string) []string {
		return append([]string{"load", drop.dir, "--table", "nights", "--pk", "id", "--create", "--only-new", "--state", "s3://states/all",
			"--settle", "1s", "--request-timeout", "2s"}, more...)
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
	first.kill()                            // its lease is waited for
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
