package lanes

import (
	"time"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/shuffle"
)

// diskWorkers is the number of frames written or read concurrently.
const diskWorkers = 2

// disk runs the disk jobs of the queues.
type disk struct {
	store *spill.Store
	jobs  chan *shuffle.Job
	done  chan *shuffle.Job
	busy  int       // number of unfinished jobs
	tried time.Time // when a disk that was full was last tried again
}

// diskAgain is the interval at which a full disk is tried again while the load frees nothing on it.
const diskAgain = 3 * time.Second

// Close removes the spilled rows and returns the load's share of shared limits.
func (s *Set) Close() error {
	s.ceilings.share.leave()
	return s.options.Disk.Close()
}

func (k *disk) work() error {
	var w shuffle.Worker
	for j := range k.jobs {
		w.Run(k.store, j)
		k.done <- j // never blocks: it holds every job
	}
	return nil
}

// StartJobs hands work to free disk workers.
func (s *Set) StartJobs(now time.Time) {
	if s.Queues.DiskFull() && s.Queues.Full() && now.Sub(s.disk.tried) >= diskAgain {
		s.disk.tried = now
		s.Queues.TryDisk()
	}
	for s.disk.busy < diskWorkers {
		j := s.Queues.Next()
		if j == nil {
			return
		}
		s.disk.busy++
		s.disk.jobs <- j // never blocks: it holds every job
	}
}

// JobDone takes a job that has run. An error stops the load, but not an error of writing: then rows stay in memory.
func (s *Set) JobDone(j *shuffle.Job) error {
	s.disk.busy--
	if err := j.WriteError(); err != nil {
		s.options.Counts.SpillError = err.Error()
	}
	s.Change()
	return s.Queues.Done(j, s.Partitions.Find)
}

// CountSpilled sets the numbers of spilled rows and bytes in the report.
func (s *Set) CountSpilled(r *ledger.ReportMemory) {
	r.SpilledRows = s.Queues.SpilledRows()
	if s.disk.store != nil {
		u := s.disk.store.Usage()
		r.SpilledBytes, r.PeakSpillBytes = u.WrittenBytes, u.PeakDiskBytes
	}
}

// Spill describes the rows on disk.
type Spill struct {
	Frames    int    `json:"frames"`
	RawBytes  int64  `json:"raw_bytes"`
	DiskBytes int64  `json:"disk_bytes"`
	Rows      int64  `json:"rows_spilled"`    // all rows spilled so far
	Error     string `json:"error,omitempty"` // why rows could not be spilled, in which case reading waits
}

func (s *Set) Spilled() Spill {
	spill := Spill{Rows: s.Queues.SpilledRows(), Error: s.options.Counts.SpillError}
	if s.disk.store != nil {
		u := s.disk.store.Usage()
		spill.Frames, spill.RawBytes, spill.DiskBytes = u.Frames, u.RawBytes, u.DiskBytes
	}
	return spill
}
