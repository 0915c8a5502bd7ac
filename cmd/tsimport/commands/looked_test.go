package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// TestCommandsLookAtATableThatExists has columns that only some rows have, and follows the advice.
func TestCommandsLookAtATableThatExists(t *testing.T) {
	tsimport := commandsIn(t)
	var rows strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, `{"n":%d,"city":"c%d","age":%d}`+"\n", 1000+i, i%7, i%50)
	}
	rows.WriteString(`{"n":9999,"late":"x"}` + "\n")
	put(t, "p.jsonl", rows.String())
	tsimport(0, "load", "p.jsonl", "-t", "p", "--create", "--pk", "n:integer", "-q")

	said := tsimport(0, "inspect", "ots://tsimport/p", "--count")
	for _, want := range []string{`rows +3,001`, `n +integer +0 +1000 +9999`, `age +integer +1 +0 +49`, `city +string +1 +c0 +c6`, `late +string +3,?000`} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%s is not in %s", want, said)
		}
	}
	holds(t, tsimport(0, "inspect", "ots://tsimport/p", "--json"), `"format":"table"`)
	holds(t, tsimport(0, "check", "ots://tsimport/p", "--pk", "n", "--unique"), "3,001 keys, 0 records repeat a key")
	holds(t, tsimport(3, "check", "ots://tsimport/p", "--pk", "city", "--unique"), "7 keys", "1 would be rejected")
	advice := tsimport(0, "advise", "ots://tsimport/p", "--partitions", "8", "--rate", "8000")
	holds(t, advice, "n: not recommended: n is increasing", "it has all columns of the source's own key")
	command := regexp.MustCompile(`(?m)copy p (\S+) --pk '(.+)'$`).FindStringSubmatch(advice)
	if command == nil {
		t.Fatalf("no command to copy the table: %s", advice)
	}
	tsimport(0, "copy", "p", command[1], "--pk", command[2], "-q")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", command[1], "-q")), "3001", "rows of the copy")

	holds(t, tsimport(2, "inspect", "ots://tsimport/nope"), "does not exist")
	holds(t, tsimport(2, "inspect", "ots://tsimport/p", "p.jsonl"), "by itself")
	holds(t, tsimport(2, "check", "ots://elsewhere/p", "--pk", "n"), "no endpoint")
	holds(t, tsimport(2, "advise", "ots://tsimport/nope"), "does not exist")
}
