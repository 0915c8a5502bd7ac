package export

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"tsimport/engine/faults"
	"tsimport/internal/tablestore/scan"
)

// TestAnExportThatIsStoppedWhileItIsRefusedSaysSo stops exports of every format when the service has refused them.
func TestAnExportThatIsStoppedWhileItIsRefusedSaysSo(t *testing.T) {
	stop := errors.New("stopped by the user")
	for _, format := range []string{CSV, JSONL, Typed, Parquet, "archive"} {
		w := newWorld(t, 500)
		ctx, cancel := context.WithCancelCause(t.Context())
		w.faults.Decide = func(r faults.Request) faults.Fault {
			if r.N > 0 { // it was refused before, and is tried again
				cancel(stop)
			}
			return faults.Fault{Action: faults.Refuse, Code: "OTSNotEnoughCapacityUnit"}
		}
		c := w.config(format)
		c.Path = filepath.Join(t.TempDir(), "out")
		var err error
		if format == "archive" {
			_, err = ToArchive(ctx, ArchiveConfig{Scan: c.Scan, Target: c.Target, Dir: c.Path})
		} else {
			_, err = ToFile(ctx, c)
		}
		stopped := new(scan.StoppedError)
		if !errors.As(err, &stopped) || !errors.Is(err, stop) {
			t.Errorf("%s: %v", format, err)
		}
		cancel(nil)
	}
}
