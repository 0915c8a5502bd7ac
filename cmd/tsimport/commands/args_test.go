package commands

import (
	"bytes"
	"strings"
	"testing"
)

func TestAFlagErrorUsesTheFlagAsTyped(t *testing.T) {
	for want, args := range map[string]string{
		`--max-wcu "1k": want a number in digits, such as 1000 or 0.5; see tsimport load --help`:            "load a --max-wcu 1k",
		`--concurrency "1,0": want a whole number in digits only, such as 1000; see tsimport load --help`:   "load a --concurrency 1,0",
		`--retry-for "5": want a duration with a unit, such as 500ms, 30s or 15m; see tsimport load --help`: "load a --retry-for 5",
		`-q "7": it takes no value; see tsimport load --help`:                                               "load a -q=7",
		`flag provided but not defined: -nope; see tsimport table list --help`:                              "table list --nope",
		`flag provided but not defined: -nope; see tsimport --help`:                                         "--nope",
	} {
		var stdout, stderr bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(args)...), &stdout, &stderr)
		if got := stderr.String(); code != 2 || got != "tsimport: "+want+"\n" {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, got, want)
		}
	}
}
