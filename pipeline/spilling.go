package pipeline

import (
	"time"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/shuffle"
)

// diskWorkers is how many frames are written or read at a time.
const diskWorkers = 2

// disk runs the jobs of the queues on the disk.
type disk struct {
	store *spill.Store
	jobs  chan *shuffle.Job
	done  chan *shuffle.Job
	busy  int
	tried time.Time // when a disk that was full was last tried again
}

// diskAgain is how long a disk that was full is left alone while nothing of the load's own is freed on it.
const diskAgain = 3 * time.Second

func newDisk(store *spill.Store) *disk {
	return &disk{store: store, jobs: make(chan *shuffle.Job, diskWorkers), done: make(chan *shuffle.Job, diskWorkers)}
}

// close removes what is on the disk.
func (s *lanes) close() error { return s.options.disk.Close() }

// work is one disk worker. It ends when jobs is closed.
func (k *disk) work() error {
	var w shuffle.Worker
	for j := range k.jobs {
		w.Run(k.store, j)
		k.done <- j // never blocks: it holds every job
	}
	return nil
}

// startJobs hands work to free disk workers.
func (s *lanes) startJobs(now time.Time) {
	if s.queues.DiskFull() && s.queues.Full() && now.Sub(s.disk.tried) >= diskAgain {
		s.disk.tried = now
		s.queues.TryDisk()
	}
	for s.disk.busy < diskWorkers {
		j := s.queues.Next()
		if j == nil {
			return
		}
		s.disk.busy++
		s.disk.jobs <- j // never blocks: it holds every job
	}
}

// jobDone takes a job that has run. Its error stops the load; one of writing is counted, for the rows stay in memory.
func (s *lanes) jobDone(j *shuffle.Job) error {
	s.disk.busy--
	if err := j.WriteError(); err != nil {
		s.options.counts.SpillError = err.Error()
	}
	s.change()
	return s.queues.Done(j, s.partitions.Find)
}
