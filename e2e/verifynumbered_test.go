//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReturnedKeysTellWhichRowIsWhichRecord: without the numbers that the service has made nobody could compare.
func TestReturnedKeysTellWhichRowIsWhichRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	var text strings.Builder
	text.WriteString("room,text\n")
	for i := range 500 {
		text.WriteString([]string{"hall", "yard", "gate", "\"two\r\nlines\""}[i%4] + ",text " + strings.Repeat("x", i%7) + "\n")
	}
	must(t, os.WriteFile(name("chat.csv"), []byte(text.String()), 0o644))
	flags := []string{name("chat.csv"), "--store", name("store"), "-t", "chat", "--pk", "room", "--pk", "id:auto", "--returned-keys", name("keys.csv")}
	if stdout, stderr, code := runBinary(t, append([]string{"load", "--create", "--verify", "--run-dir", name("run")}, flags...)...); code != 0 || !strings.Contains(stderr, "500 equal") {
		t.Fatalf("load --verify: exit code %d: %s%s", code, stdout, stderr)
	}
	expect := func(what string, wantCode int, want string) {
		t.Helper()
		stdout, stderr, code := runBinary(t, append([]string{"verify", "--extra", "fail"}, flags...)...)
		if code != wantCode || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", what, code, wantCode, want, stdout, stderr)
		}
	}
	expect("as it was loaded", 0, "500 rows expected, 500 equal, 0 missing, 0 different, 0 surplus")

	keys, err := os.ReadFile(name("keys.csv"))
	must(t, err)
	lines := strings.SplitAfter(string(keys), "\n")
	must(t, os.WriteFile(name("one.csv"), []byte(lines[0]+lines[7]), 0o644))
	if _, stderr, code := runBinary(t, "load", name("one.csv"), "--store", name("store"), "-t", "chat", "--columns", "room,id", "--mode", "delete", "--run-dir", name("delete")); code != 0 {
		t.Fatal(stderr)
	}
	expect("a row was deleted", 6, "1 missing, 0 different, 0 surplus")

	must(t, os.WriteFile(name("keys.csv"), []byte(strings.Join(append(lines[:7:7], lines[8:]...), "")), 0o644))
	expect("its key is not in the file", 6, "499 rows expected, 499 equal, 0 missing, 0 different, 0 surplus, 1 without a returned key")

	must(t, os.WriteFile(name("chat.csv"), []byte(strings.Replace(text.String(), "yard,", "hall,", 1)), 0o644))
	expect("another record", 1, "has another key than")

	must(t, os.WriteFile(name("keys.csv"), []byte("file,record,id\n"), 0o644))
	expect("another table's keys", 2, "its header is")
}
