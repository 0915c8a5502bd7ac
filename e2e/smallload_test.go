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
	dir := t.TempDir()
	name := fmt.Sprintf("tsimport_small_%d_%d", time.Now().UnixMilli(), os.Getpid())
	key := []string{"--table", name, "--pk", "DeviceID:integer", "--pk", "OrderNumber:integer"}
	input := filepath.Join("..", "examples", "student-cards.csv")
	load := append([]string{"load", input, "--create", "--limit", "2000", "--run-dir", filepath.Join(dir, "run"), "--verify"}, key...)
	if _, stderr, code := runBinaryWith(t, env, load...); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, stderr, code := runBinaryWith(t, env, "table", "drop", name, "--yes"); code != 0 {
		t.Errorf("drop: exit code %d: %s", code, stderr)
	}
}
