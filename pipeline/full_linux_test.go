package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/rundir"
)

// fill makes writes to an open file fail, as on a full disk. Its content can still be synced.
func fill(t *testing.T, f *os.File) {
	t.Helper()
	other, err := os.Open(f.Name()) // read-only
	if err != nil {
		t.Error(err)
		return
	}
	defer other.Close()
	conformance.Equal(t, syscall.Dup3(int(other.Fd()), int(f.Fd()), syscall.O_CLOEXEC), nil, "error")
}

// No checkpoint may rely on rejects that could not be written, as no attempt could resume from it.
func TestRunResumesOnceDiskHasSpaceForRejects(t *testing.T) {
	// A load that is done before its first checkpoint, or has no rejects left by then, needs a longer input.
	for records := 2000; ; records *= 4 {
		conformance.MustTrue(t, records <= 1<<20, "no load was running when a checkpoint was written")
		if fullDisk(t, records) {
			return
		}
	}
}

// fullDisk loads records, a quarter rejected, on a disk that fills up, and reports whether rejects came after that.
func fullDisk(t *testing.T, records int) bool {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,a\n"+strings.Repeat("key1,1\nkey2,2\nkey3\nkey4,4\n", records/4)))
	cfg.Resume.Look, cfg.Checkpoint.Every, cfg.Read.SplitBytes = true, time.Millisecond, 100
	first := cfg
	full := false // used by the dispatcher's goroutine
	first.onSnapshot = func(d *dispatcher, _ *checkpoint.Snapshot) {
		for _, f := range d.files.Folder.Files() {
			if !full {
				fill(t, f)
			}
			full = true
		}
	}
	r, err := first.run(context.Background())
	if err == nil && r.State == StateFinished {
		return false
	}
	conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "store rejected rows: write ") &&
		r.State == StateFailed && full, "error %v", err)
	if r := w.load(cfg); r.State != StateFinished || !r.Resumed || r.Read != int64(records) || r.Rejected != r.Read/4 {
		t.Errorf("%+v", r)
	}
	conformance.Equal(t, len(lines(t, filepath.Join(cfg.RunDir, rundir.ReasonsFile))), records/4, "rejects are kept")
	return true
}
