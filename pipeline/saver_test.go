package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tsimport/pipeline/checkpoint"
)

// steps records in which order a saver works, and fails at one of them.
type steps struct {
	done []string
	fail string
}

func (s *steps) take(name string) error {
	s.done = append(s.done, name)
	if s.fail == name {
		return errors.New(name + " fails")
	}
	return nil
}

// recordedSaver is a saver into a folder of its own. It never blocks on the checkpoints of a test.
func recordedSaver(t *testing.T, fail string) (*saver, *steps) {
	taken := &steps{fail: fail}
	s := newSaver(t.TempDir(), func() error { return taken.take("store") }, func(*checkpoint.Snapshot) error { return taken.take("checkpoint") })
	s.jobs, s.done = make(chan *saving, 2), make(chan saved, 2)
	return s, taken
}

// at is a snapshot of a moment.
func at(moment time.Time) *checkpoint.Snapshot {
	s := new(checkpoint.Snapshot)
	s.Job, s.Time, s.Attempt, s.Pieces = "job", moment.UTC(), 1, []checkpoint.Piece{{}}
	return s
}

func TestACheckpointIsWrittenAfterWhatItCountsOnIsSafe(t *testing.T) {
	s, taken := recordedSaver(t, "")
	file, err := os.Create(filepath.Join(t.TempDir(), "rejects.csv"))
	must(t, err)
	defer file.Close()
	moment := time.Unix(1e9, 0)
	must(t, s.write(&saving{snapshot: at(moment), files: []*os.File{file}}))
	if !slices.Equal(taken.done, []string{"store", "checkpoint"}) {
		t.Errorf("steps %q", taken.done)
	}
	if kept, err := checkpoint.Read(s.path); err != nil || !kept.Time.Equal(moment) {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

func TestACheckpointThatCountsOnWhatMayBeLostIsNotWritten(t *testing.T) {
	closed, err := os.Create(filepath.Join(t.TempDir(), "rejects.csv"))
	must(t, err)
	must(t, closed.Close())
	archived := errors.New("the archive is not whole")
	for name, tt := range map[string]struct {
		fail  string
		job   saving
		want  error
		steps []string
	}{
		"an archive that failed":           {job: saving{failed: archived}, want: archived},
		"a file that cannot be synced":     {job: saving{files: []*os.File{closed}}, want: os.ErrClosed},
		"a store that cannot be synced":    {fail: "store", steps: []string{"store"}},
		"a checkpoint that is not allowed": {fail: "checkpoint", steps: []string{"store", "checkpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, taken := recordedSaver(t, tt.fail)
			tt.job.snapshot = at(time.Unix(1e9, 0))
			err := s.write(&tt.job)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !slices.Equal(taken.done, tt.steps) {
				t.Errorf("%v after %q", err, taken.done)
			}
			if checkpoint.Exists(s.path) {
				t.Error("there is a checkpoint")
			}
		})
	}
}

// Requests are sent only for a while after the moment that is on the disk: one that was not written does not count.
func TestOnlyACheckpointThatIsWrittenMovesTheMomentOnTheDisk(t *testing.T) {
	s, _ := recordedSaver(t, "")
	first, second := time.Unix(1e9, 0), time.Unix(1e9+1, 0)
	failed := errors.New("the archive is not whole")
	s.jobs <- &saving{snapshot: at(first)}
	s.jobs <- &saving{snapshot: at(second), failed: failed}
	close(s.jobs)
	must(t, s.work())
	for i, want := range []saved{{first.UTC(), nil}, {second.UTC(), failed}} {
		if got := <-s.done; got != want {
			t.Errorf("checkpoint %d: %+v, want %+v", i+1, got, want)
		}
	}
	if last := s.onDisk.Load(); last == nil || !last.Equal(first) {
		t.Errorf("the moment on the disk is %v, want %v", last, first)
	}
}
