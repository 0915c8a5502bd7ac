//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"testing"
)

// TestStoresOfOneNameInTwoFoldersAreTwoTargets loads one file into the default store of each of two folders at once. In the same
// folder the second load is refused.
func TestStoresOfOneNameInTwoFoldersAreTwoTargets(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "XDG_CACHE_HOME="+t.TempDir())
	elsewhere := newPlace(t, here.env...)
	load := []string{"load", here.write("in.csv", fileOf("id,v", 2000, func(i int) string { return fmt.Sprintf("%d,x", i) })), "--table", "t", "--pk", "id:integer"}
	first := here.start(append(load, "--max-rows-per-second", "1")...)
	first.must(func() bool { return len(here.glob("tsimport-runs/*/summary.json")) == 1 })
	elsewhere.ends(0, load)
	here.ends(1, load, "it is in use by another process")
	first.signal(os.Kill)
}
