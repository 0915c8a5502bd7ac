package e2e

import (
	"bytes"
	"encoding/json"
	"os"
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
	p := newPlace(t)
	var text bytes.Buffer
	must(t, bench.StudentCards{Rows: 15_000}.WriteCSV(t.Context(), &text))
	p.run(0, append([]string{"load", p.write("cards.csv", text.String())}, ofCards...)...)
	want := p.output("export", "--store", "store", "--table", "t")
	s := startServe(t, "--store", p.path("store"))
	out := p.path("out.csv")
	var writing atomic.Bool // until the export is killed
	proxy := &hostileProxy{decide: func(operation string, n int) trouble {
		if operation != "GetRange" || !writing.Load() {
			return nil
		}
		return func(_ *hostileProxy, forward func() []byte) ([]byte, bool) {
			time.Sleep(300 * time.Millisecond) // of a page, of several: it notes where it is once a second
			for writing.Load() && noted(out) {
				time.Sleep(time.Millisecond) // from then on nothing is answered
			}
			return forward(), true
		}
	}}
	proxy.start(t, s, 1)
	p.env = s.credentials()
	writing.Store(true)
	args := []string{"export", "--endpoint", proxy.URL, "--instance", s.Instance, "--table", "t", "-o", "out.csv"}
	r := p.start(args...)
	r.must(func() bool { return noted(out) })
	r.kill()
	writing.Store(false)
	if _, err := os.Stat(out); err == nil {
		t.Fatal("the export ended before it could be killed")
	}
	p.ends(0, args, "continued after")
	if got := p.read("out.csv"); got != want || strings.Count(got, "\n") < 15_000 {
		t.Errorf("the file has %d bytes, want %d", len(got), len(want))
	}
	if left, _ := filepath.Glob(out + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// noted tells whether an export to the file has noted that rows are safe.
func noted(out string) bool {
	var note struct{ Rows int64 }
	text, err := os.ReadFile(out + ".tsimport-export")
	return err == nil && json.Unmarshal(text, &note) == nil && note.Rows > 0 // it is replaced as a whole
}
