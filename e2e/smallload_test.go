//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestASmallLoad loads, compares and drops a table of its own: of the instance that TABLESTORE_TEST_… names (make real), if there is one.
func TestASmallLoad(t *testing.T) {
	of := func(name string) string { return os.Getenv("TABLESTORE_TEST_" + name) }
	env := []string{"TABLESTORE_ENDPOINT=" + of("ENDPOINT"), "TABLESTORE_INSTANCE=" + of("INSTANCE"), "TABLESTORE_ACCESS_KEY_ID=" + of("ACCESS_KEY_ID"), "TABLESTORE_ACCESS_KEY_SECRET=" + of("ACCESS_KEY_SECRET")}
	if of("ENDPOINT") == "" {
		s := startServe(t, "--sync", "none")
		env = append(s.credentials(), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance)
	}
	p := newPlace(t, env...)
	input, err := filepath.Abs("../examples/student-cards.csv")
	must(t, err)
	name := fmt.Sprintf("tsimport_small_%d_%d", time.Now().UnixMilli(), os.Getpid())
	p.ends(0, []string{"load", input, "--create", "--limit", "2000", "--verify", "--table", name, "--pk", "DeviceID:integer", "--pk", "OrderNumber:integer"})
	p.ends(0, []string{"table", "drop", name, "--yes"})
}
