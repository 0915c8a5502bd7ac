package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	s := startServe(t, "--store", store)
	var writing atomic.Pointer[string] // the file, until the export is killed
	p := &hostileProxy{decide: func(operation string, n int) trouble {
		if operation != "GetRange" || writing.Load() == nil {
			return nil
		}
		return func(p *hostileProxy, forward func() []byte) ([]byte, bool) {
			time.Sleep(300 * time.Millisecond) // of a page, of a dozen: it notes where it is once a second
			for out := writing.Load(); out != nil && noted(*out); out = writing.Load() {
				time.Sleep(time.Millisecond) // from then on nothing is answered
			}
			return forward(), true
		}
	}}
	p.start(t, s, 1)
	for format, want := range want {
		out := filepath.Join(dir, "out."+format)
		writing.Store(&out)
		args := []string{"export", "--endpoint", p.URL, "--instance", s.Instance, "--table", "t", "--format", format, "-o", out}
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), s.credentials()...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(processTimeout); !noted(out); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				cmd.Process.Kill()
				cmd.Wait()
				t.Fatalf("%s: nothing was noted", format)
			}
		}
		cmd.Process.Kill()
		cmd.Wait() // killed
		writing.Store(nil)
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

// noted tells whether an export to the file has noted that rows are safe.
func noted(out string) bool {
	var note struct{ Rows int64 }
	text, err := os.ReadFile(out + ".tsimport-export")
	return err == nil && json.Unmarshal(text, &note) == nil && note.Rows > 0 // it is replaced as a whole
}
