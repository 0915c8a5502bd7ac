//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestATableThatIsDroppedIsRefusedPermanently drops it while its rows are written.
func TestATableThatIsDroppedIsRefusedPermanently(t *testing.T) {
	t.Parallel()
	p := newPlace(t, startServe(t).env()...)
	r, in := p.piped(p.command("load", "-", "--table", "t", "--create", "--pk", "id:integer", "--retry-for", "1s", "--run-dir", "run"))
	go func() { // rows continue until the load ends, which breaks the pipe
		_, err := fmt.Fprintln(in, "id,n")
		for i := 0; err == nil; i++ {
			_, err = fmt.Fprintf(in, "%d,1\n", i)
		}
	}()
	r.must(func() bool {
		export := p.start("export", "--table", "t", "--limit", "1")
		return export.wait() == 0 && strings.Contains(export.said.String(), ",1\n")
	})
	p.run(0, "table", "drop", "t", "--yes")
	if code := r.wait(); code != 5 || !strings.Contains(r.said.String(), "OTSObjectNotExist") {
		t.Errorf("exit code %d, want 5\n%s", code, &r.said)
	}
}
