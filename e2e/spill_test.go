//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"tsimport/bench"
)

// TestWhatACrashedLoadSpilledIsRemovedByTheNext kills a load that has rows on disk and loads again with the same folder.
func TestWhatACrashedLoadSpilledIsRemovedByTheNext(t *testing.T) {
	temp, p := t.TempDir(), newPlace(t)
	// One of two partitions gets no rows, so reading continues for its sake although the other is full.
	server := startServe(t, "--partitions", "2", "--sample-file", p.write("sample.txt", "1\n2000000\n"))
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", server.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", server.AccessKeySecret)
	w := watch(t, "--endpoint", server.URL, "--instance", server.Instance, "--create",
		"--memory", "16MiB", "--temp-dir", temp, "--max-rows-per-second", "10", "--quiet")
	go func() { // the kill breaks the pipe
		_, err := io.WriteString(w.in, bench.CSVHeader)
		for i := 0; err == nil; i++ {
			_, err = fmt.Fprintf(w.in, "%d,A001,2,%d,1.5,2024-01-01T00:00:00Z,tea\n", i%100, i)
		}
	}()
	w.must(func() bool {
		_, body := w.get("status")
		var s struct {
			Spill struct{ Frames int }
		}
		return json.Unmarshal([]byte(body), &s) == nil && s.Spill.Frames > 0 // before the load has begun it says something else
	})
	w.kill()
	left, err := filepath.Glob(filepath.Join(temp, "tsimport-spill-*", "frames"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the killed load left %v behind: %v", left, err)
	}
	must(t, os.WriteFile(filepath.Join(temp, "tsimport-spill-notes.txt"), []byte("keep"), 0o644))
	examples, err := filepath.Abs("../examples/student-cards.csv")
	must(t, err)
	p.run(0, append([]string{"load", examples, "--temp-dir", temp}, ofCards...)...)
	if entries, err := os.ReadDir(temp); err != nil || len(entries) != 1 || entries[0].Name() != "tsimport-spill-notes.txt" {
		t.Errorf("the folder holds %v, want only the file that is not the loads': %v", entries, err)
	}
}
