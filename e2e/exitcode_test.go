package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestExitCodes ends a command with every code but those of signals, which TestSignalsStopALoad has. What else ends with them is shown in
// cmd/tsimport/commands: TestEveryEndingIsSaidAndCounted.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	p := newPlace(t, s.env()...)
	rows := func(n int) string { return fileOf("id,n", n, func(i int) string { return fmt.Sprintf("%d,%d", i, i) }) }
	for name, text := range map[string]string{"good.csv": rows(20), "many.csv": rows(2000), "other.csv": rows(19) + "19,7\n", "bad.csv": rows(20) + "x,1\n"} {
		p.write(name, text)
	}
	n := 0
	load := func(args ...string) []string {
		n++
		return append([]string{"load", "--table", "t", "--create", "--pk", "id:integer", "--run-dir", fmt.Sprint("run", n)}, args...)
	}
	for _, timeout := range []string{"2s", "1m"} { // a slow machine may take the first before there is anything to resume
		said := p.ends(1, load("many.csv", "--max-rows-per-second", "20", "--timeout", timeout))
		if strings.Contains(said, "to resume: ") {
			break
		}
		if timeout == "1m" {
			t.Errorf("it is not said how to resume: %s", said)
		}
	}
	p.ends(0, load("good.csv"), "finished")
	const nobody = "http://127.0.0.1:1" // a port that was free may be another test's by now
	p.ends(1, load("good.csv", "--retry-for", "1ms", "--endpoint", nobody), "cannot connect")
	p.ends(2, load("good.csv", "--nonsense"), "nonsense")
	p.ends(3, load("bad.csv"), "1 rejected")
	p.ends(4, load("bad.csv", "--max-errors", "0"), "error limit")
	p.ends(5, []string{"table", "list", "--instance", "other"}, "OTSAuthFailed")
	p.ends(6, []string{"verify", "other.csv", "--table", "t"})
	p.ends(7, load("no*.csv"), "it matches none")
}
