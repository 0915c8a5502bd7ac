package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tsimport/checkpoint"
	"tsimport/runfolder"
)

// fill lets an open file take no more, as on a full disk; what it has can still be synced.
func fill(t *testing.T, f *os.File) {
	t.Helper()
	other, err := os.Open(f.Name()) // for reading
	if err != nil {
		t.Error(err)
		return
	}
	defer other.Close()
	if err := syscall.Dup3(int(other.Fd()), int(f.Fd()), syscall.O_CLOEXEC); err != nil {
		t.Error(err)
	}
}

// Rejects that could not be written must not be counted on by a checkpoint that could: nobody could go on from it.
func TestARunGoesOnWhenThereIsRoomForItsRejectsAgain(t *testing.T) {
	w := newWorld(t)
	var text strings.Builder
	text.WriteString("id,a\n")
	for range 500 {
		text.WriteString("key1,1\nkey2,2\nkey3\nkey4,4\n")
	}
	cfg := w.config(w.file("in.csv", text.String()))
	cfg.Resume.Look, cfg.CheckpointEvery, cfg.Read.SplitBytes = true, time.Millisecond, 100
	first := cfg
	full := false // the dispatcher's
	first.onSnapshot = func(d *dispatcher, _ *checkpoint.Snapshot) {
		for _, f := range d.folder.Files() {
			if !full {
				fill(t, f)
			}
			full = true
		}
	}
	r, err := Run(context.Background(), first)
	if err == nil || !strings.Contains(err.Error(), "keep rejected rows: write ") || r.State != StateFailed || !full {
		t.Fatalf("error %v", err)
	}
	if r := w.load(cfg); r.State != StateFinished || !r.Resumed || r.Read != 2000 || r.Rejected != 500 {
		t.Errorf("%+v", r)
	}
	if kept := lines(t, filepath.Join(cfg.RunDir, runfolder.ReasonsFile)); len(kept) != 500 {
		t.Errorf("%d rejects are kept, want 500", len(kept))
	}
}
