package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tsimport/internal/tablestore/scan"
)

// TestOneExportAtATimeWritesAFile: a second one would cut off and replace what the first has noted, and an export that resumes after both were killed
// would continue the rows of one after those of the other.
func TestOneExportAtATimeWritesAFile(t *testing.T) {
	w := newWorld(t, 500)
	for _, format := range []string{CSV, JSONL, Parquet} {
		c := w.config(format)
		c.Path, c.Marks = filepath.Join(t.TempDir(), "out"), time.Nanosecond
		e := newExporter(t.Context(), &c)
		tried := false
		e.wrap = func(f scan.Formatter) scan.Formatter {
			second := c
			second.Fresh = true
			_, err := ToFile(t.Context(), second)
			if busy := new(BusyError); !errors.As(err, &busy) {
				t.Errorf("%s: a second export: %v", format, err)
			}
			tried = true
			return f
		}
		if err := e.toFile(); err != nil || !tried {
			t.Fatal(err, tried)
		}
		if left, err := filepath.Glob(c.Path + "?*"); err != nil || len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	}
}

// TestALockThatAKilledExportHasLeftIsTaken: its file is there, and nobody holds it.
func TestALockThatAKilledExportHasLeftIsTaken(t *testing.T) {
	w := newWorld(t, 10)
	c := w.config(JSONL)
	c.Path = filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(c.Path+lockSuffix, nil, 0o600))
	if r, err := ToFile(context.Background(), c); err != nil || r.Rows != 10 {
		t.Errorf("%+v, %v", r, err)
	}
}
