//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestIndexesThatARestoreDoesNotMakeAreNamedBeforeTheFirstRow: with all that is needed to make them, also without rows.
func TestIndexesThatARestoreDoesNotMakeAreNamedBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	p := pairUp(t, startServe(t, "--sync", "none", "--indexes", "2"), startServe(t, "--sync", "none"))
	p.run(0, "table", "create", "t", "--pk", "a:string", "--pk", "b:integer", "--max-versions", "1")
	p.run(0, "export", "--table", "t", "-o", "kept/")
	for _, args := range [][]string{
		{"load", "kept", "--table", "restored", "--create", "--indexes", "none", "--endpoint", p.b.URL}, {"copy", "t", p.inB("copied"), "--create", "--indexes", "none"},
		{"load", "kept", "--table", "again", "--create", "--indexes", "none", "--dry-run", "--endpoint", p.b.URL},
	} {
		said := p.run(0, args...)
		for _, index := range []string{"t_index1", "t_index2"} {
			at := strings.Index(said, "does not get the global index "+index+" with the key a, b")
			if at < 0 || at > strings.Index(said, "new table ") && strings.Contains(said, "new table ") && at > strings.Index(said, " read,") {
				t.Errorf("%v: %s", args, said)
			}
		}
	}
}
