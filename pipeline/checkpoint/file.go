package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"example.com/tsimport/internal/atomicfile"
)

// Names of the files in a run folder.
const (
	File     = "checkpoint.bin"
	PrevFile = "checkpoint.prev"
)

// Write writes a snapshot. It keeps the previous one under another name, for Read after a crash between the renames.
func Write(dir string, encoded []byte) error {
	err := atomicfile.WriteBytes(filepath.Join(dir, File), atomicfile.Options{Perm: 0o600, Previous: PrevFile}, encoded)
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

// Read returns the newest snapshot of a run folder, or fs.ErrNotExist. If the newest one is damaged, Read returns the
// previous one with Older set. Every unfinished record may then have been sent, because the allowances have expired.
func Read(dir string) (*Snapshot, error) {
	var failed error
	for _, name := range []string{File, PrevFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			var s *Snapshot
			if s, err = Decode(text); err == nil {
				if failed != nil {
					s.doubt()
				}
				return s, nil
			}
		}
		failed = cmp.Or(failed, fmt.Errorf("read checkpoint %s: %w", filepath.Join(dir, name), err))
	}
	if failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("read checkpoint in %s: %w", dir, fs.ErrNotExist)
}

// doubt makes the snapshot one whose unfinished rows may all have been sent.
func (s *Snapshot) doubt() {
	s.Older, s.Settled = true, false
	for i := range s.Pieces {
		s.Pieces[i].Allowance = unlimited
	}
}

// unlimited is an allowance that is never used up, yet is small enough to be summed over all pieces.
const unlimited = 1 << 40

// Exists reports whether the run folder has a checkpoint, even a damaged one.
func Exists(dir string) bool {
	return slices.ContainsFunc([]string{File, PrevFile}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// Remove removes the checkpoint of a finished run.
func Remove(dir string) error {
	var failed error
	// The previous one is first: if it were left alone, it would be taken for the newest.
	for _, name := range []string{PrevFile, File, File + atomicfile.Suffix, DivisionFile, OrderFile, otherOrderFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove checkpoint: %w", err))
		}
	}
	return failed
}
