package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestExitCodes ends a command with every code but those of signals, which TestSignalsStopALoad has.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--max-tables", "2")
	p := newPlace(t, s.env()...)
	rows := func(n int) string { return fileOf("id,n", n, func(i int) string { return fmt.Sprintf("%d,%d", i, i) }) }
	for name, text := range map[string]string{
		"good.csv": rows(20), "many.csv": rows(20_000), "other.csv": rows(19) + "19,7\n", "bad.csv": rows(20) + "x,1\n", "twice.csv": rows(20) + "3,3\n", "empty.csv": "",
	} {
		p.write(name, text)
	}
	const nobody = "http://127.0.0.1:1" // a port that was free may be another test's by now
	n := 0
	command := func(args ...string) []string {
		switch args[0] {
		case "load":
			args = append(args, "--create", "--pk", "id:integer")
		case "verify", "check":
			args = append(args, "--pk", "id:integer")
		}
		if n++; args[0] == "load" || args[0] == "sync" {
			args = append(args, "--run-dir", fmt.Sprint("run", n))
		}
		return args
	}
	for _, timeout := range []string{"2s", "1m"} { // a slow machine may take the first before there is anything to resume
		said := p.ends(1, command("load", "many.csv", "--table", "t", "--max-rows-per-second", "100", "--timeout", timeout))
		if strings.Contains(said, "to resume: ") {
			break
		}
		if timeout == "1m" {
			t.Errorf("it is not said how to resume: %s", said)
		}
	}
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"load good.csv --table t", 0, "finished"},
		{"verify many.csv --table t --max-rcu 0.001 --timeout 1s", 1, "stopped by --timeout 1s"},
		{"load good.csv --table t --retry-for 1ms --endpoint " + nobody, 1, "cannot connect"},
		{"load good.csv --table t --nonsense", 2, "nonsense"},
		{"load good.csv no*.csv --table t", 2, "it matches none"},
		{"load bad.csv --table t", 3, "1 rejected"},
		{"load bad.csv --table t --max-errors 0", 4, "error limit"},
		{"load good.csv --table t --instance other", 5, "OTSAuthFailed"},
		{"verify good.csv --table t --instance other", 5, "OTSAuthFailed"},
		{"export --table t --instance other", 5, "OTSAuthFailed"},
		{"table list --instance other", 5, "OTSAuthFailed"},
		{"load good.csv --table t2", 0, ""},
		{"load good.csv --table t3", 5, "OTSQuotaExhausted"},
		{"verify good.csv --table t", 0, ""},
		{"verify other.csv --table t", 6, ""},
		{"check twice.csv", 0, ""},
		{"check twice.csv --fail-on-duplicates", 6, ""},
		{"load no*.csv --table t", 7, "it matches none"},
		{"load none.csv --table t", 2, "no such file"},
		{"load empty.csv --table t", 2, "empty"},
		{"sync no*.csv --table t --delete --pk id:integer", 7, "it matches none"},
		{"sync empty.csv --table t --delete --pk id:integer", 3, "empty"},
	} {
		p.ends(tt.code, command(strings.Fields(tt.args)...), tt.says)
	}
}
