package pipeline

import (
	"example.com/tsimport/pipeline/checkpoint"
)

// counters are the parts of a report that count over all attempts.
func (r *Report) counters() map[string]int64 {
	c := map[string]int64{}
	for name, n := range r.lasting() {
		c[name] = *n
	}
	return c
}

// lasting names the counters that count over all attempts.
func (r *Report) lasting() map[string]*int64 {
	return map[string]*int64{
		"read": &r.Read, "written": &r.Written, "rejected": &r.Rejected, "superseded": &r.Superseded, "archived": &r.Archived, "condition_failed": &r.ConditionFailed, "maybe_applied": &r.MaybeApplied,
		"retried": &r.Retried, "replayed": &r.Replayed, "rows_sent": &r.RowsSent, "throttled": &r.Throttled, "unavailable": &r.Unavailable,
		"bytes_read": &r.BytesRead, "write_cu": &r.WriteCU, "requests": &r.Requests,
		"recuts": &r.Recuts, "seams": &r.Seams, "expired_cells": &r.ExpiredCells, "read_again": &r.ReadAgain, "read_waits": &r.ReadWaits, "send_waits": &r.SendWaits,
	}
}

// resume takes over what the attempts before have counted.
func (r *Report) resume(s *checkpoint.Snapshot) {
	for name, n := range r.lasting() {
		*n = s.Counters[name]
	}
	r.Attempts, r.Resumed = s.Attempt+1, true
	r.FirstStarted = s.Begun
	r.Unfinished = r.Read - r.final() // until the ledger says it
	r.writtenBefore = r.Written
	if s.Ordered && len(s.Starts) > 0 {
		r.BytesRead = s.Starts[0].Bytes // what follows is read again
	}
}
