package keep

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"example.com/tsimport/pipeline/checkpoint"
)

// saving is a checkpoint on its way to the disk.
type saving struct {
	snapshot *checkpoint.Snapshot
	files    []*os.File // files to sync first
	failed   error      // why the checkpoint must not be written, or nil
}

// Saved is the result of writing a checkpoint.
type Saved struct {
	described time.Time // the moment that the checkpoint describes
	err       error
}

type saver struct {
	path   string
	sync   func() error // syncs the store; may be nil
	onSave func(*checkpoint.Snapshot) error
	state  func(encoded []byte) error // stores the checkpoint in the state; may be nil
	jobs   chan *saving
	done   chan Saved
	onDisk atomic.Pointer[time.Time] // the moment that the newest checkpoint describes
}

func newSaver(path string, sync func() error, onSave func(*checkpoint.Snapshot) error) *saver {
	return &saver{path: path, sync: sync, onSave: onSave, jobs: make(chan *saving, 1), done: make(chan Saved, 1)}
}

func (s *saver) work() error {
	for j := range s.jobs {
		err := s.write(j)
		if err == nil {
			s.onDisk.Store(&j.snapshot.Time)
		}
		s.done <- Saved{j.snapshot.Time, err} // never blocks, as only one is written at once
	}
	return nil
}

// write syncs everything that a checkpoint relies on, then writes the checkpoint.
func (s *saver) write(j *saving) error {
	if j.failed != nil {
		return j.failed
	}
	for _, f := range j.files {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("sync the run's files: %w", err)
		}
	}
	if s.sync != nil {
		if err := s.sync(); err != nil {
			return fmt.Errorf("sync the store: %w", err)
		}
	}
	encoded, err := j.snapshot.Encode()
	if err != nil {
		return err
	}
	if s.onSave != nil {
		if err := s.onSave(j.snapshot); err != nil {
			return err
		}
	}
	if err := checkpoint.Write(s.path, encoded); err != nil || s.state == nil {
		return err
	}
	return s.state(encoded)
}
