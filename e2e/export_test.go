package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/bench"
)

// TestAKilledExportContinues kills an export once it has noted that rows are safe, and gives the same command again.
func TestAKilledExportContinues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	input := filepath.Join(dir, "cards.csv")
	f, err := os.Create(input)
	if err != nil {
		t.Fatal(err)
	}
	if err := (bench.StudentCards{Rows: 30_000}).WriteCSV(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	store := filepath.Join(dir, "store")
	if _, stderr, code := runBinary(t, "load", input, "--store", store, "--table", "t", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber", "--run-dir", dir+"/run"); code != 0 {
		t.Fatalf("load: exit code %d, %s", code, stderr)
	}
	want := map[string]string{}
	for _, format := range []string{"csv", "jsonl"} {
		stdout, stderr, code := runBinary(t, "export", "--store", store, "--table", "t", "--format", format)
		if code != 0 || strings.Count(stdout, "\n") < 30_000 {
			t.Fatalf("export: exit code %d, %s", code, stderr)
		}
		want[format] = stdout
	}
	s := startServe(t, "--store", store, "--latency", "150ms") // a page: a dozen of them take seconds
	for format, want := range want {
		out := filepath.Join(dir, "out."+format)
		args := []string{"export", "--endpoint", s.URL, "--instance", s.Instance, "--table", "t", "--format", format, "-o", out}
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), s.credentials()...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var noted struct{ Rows int64 }
		for end := time.Now().Add(processTimeout); noted.Rows == 0; time.Sleep(time.Millisecond) {
			if text, err := os.ReadFile(out + ".tsimport-export"); err == nil {
				_ = json.Unmarshal(text, &noted) // it is replaced as a whole
			}
			if time.Now().After(end) {
				cmd.Process.Kill()
				cmd.Wait()
				t.Fatalf("%s: nothing was noted", format)
			}
		}
		cmd.Process.Kill()
		cmd.Wait() // killed
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%s: the export ended before it could be killed", format)
		}
		_, stderr, code := runBinaryWith(t, s.credentials(), args...)
		if code != 0 || !strings.Contains(stderr, "continued after") {
			t.Errorf("%s: exit code %d, %s", format, code, stderr)
		}
		if got, err := os.ReadFile(out); err != nil || string(got) != want {
			t.Errorf("%s: the file has %d bytes, want %d, %v", format, len(got), len(want), err)
		}
		if left, _ := filepath.Glob(out + ".*"); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}
