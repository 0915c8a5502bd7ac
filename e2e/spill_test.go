//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tsimport/bench"
)

// TestWhatACrashedLoadSpilledIsRemovedByTheNext kills a load that has rows on disk and loads again with the same folder.
func TestWhatACrashedLoadSpilledIsRemovedByTheNext(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	temp := t.TempDir()
	// One of two partitions gets no rows, so reading continues for its sake although the other is full.
	sample := filepath.Join(t.TempDir(), "sample.txt")
	if err := os.WriteFile(sample, []byte("1\n2000000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := startServe(t, "--partitions", "2", "--sample-file", sample)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", server.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", server.AccessKeySecret)
	w := watch(t, "--endpoint", server.URL, "--instance", server.Instance, "--create",
		"--memory", "16MiB", "--temp-dir", temp, "--max-rows-per-second", "10", "--quiet")
	go func() {
		// The kill breaks the pipe.
		io.WriteString(w.in, bench.CSVHeader)
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(w.in, "%d,A001,2,%d,1.5,2024-01-01T00:00:00Z,tea\n", i%100, i); err != nil {
				return
			}
		}
	}()
	deadline := time.Now().Add(processTimeout)
	for {
		_, body := w.get("status")
		var s struct {
			Spill struct {
				Frames int
			}
		}
		if json.Unmarshal([]byte(body), &s); s.Spill.Frames > 0 { // before the load has begun it says something else
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is spilled: %s", body)
		}
	}
	w.cmd.Process.Kill()
	w.cmd.Wait()
	left, err := filepath.Glob(filepath.Join(temp, "tsimport-spill-*", "frames"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the killed load left %v behind: %v", left, err)
	}
	mine := filepath.Join(temp, "tsimport-spill-notes.txt")
	if err := os.WriteFile(mine, []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	next := exec.Command(binary, "load", "../examples/student-cards.csv", "--table", "next", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber",
		"--store", filepath.Join(t.TempDir(), "store"), "--run-dir", filepath.Join(t.TempDir(), "run"), "--temp-dir", temp)
	if out, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, err := os.ReadDir(temp)
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(mine) {
		t.Errorf("the folder holds %v, want only the file that is not the loads': %v", entries, err)
	}
}
