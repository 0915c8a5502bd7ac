package ledger

import "example.com/tsimport/pipeline/checkpoint"

// Counted holds the counts of a running load. It belongs to the dispatcher's goroutine while rows are in flight.
type Counted struct {
	ReportBad
	ReportCounts
	ReportTables
	ReportAttempts
	ReportLive
	ReportTraffic
	ReportIndexes
	ReportMarks
	ReportStamps
	ReportOrder
	ReportPartitions
	ReportMemory
	ReportCheckpoints
	// LimitedBy lists the limits of this attempt's speed, longest first (docs/tuning.md).
	LimitedBy []ReportLimit `json:"limited_by,omitempty"`

	Timeline *Timeline `json:"-"` // timeline of this attempt; nil if no row was ever in flight
}

// Counters returns the counts over all attempts, by name.
func (r *Counted) Counters() map[string]int64 {
	c := map[string]int64{}
	for name, n := range r.lasting() {
		c[name] = *n
	}
	return c
}

func (r *Counted) lasting() map[string]*int64 {
	return map[string]*int64{
		"read": &r.Read, "written": &r.Written, "rejected": &r.Rejected, "superseded": &r.Superseded, "archived": &r.Archived,
		"condition_failed": &r.ConditionFailed, "maybe_applied": &r.MaybeApplied, "retried": &r.Retried,
		"replayed": &r.Replayed, "rows_sent": &r.RowsSent, "throttled": &r.Throttled, "unavailable": &r.Unavailable,
		"bytes_read": &r.BytesRead, "bytes_sent": &r.BytesSent, "write_cu": &r.WriteCU, "requests": &r.Requests,
		"recuts": &r.Recuts, "seams": &r.Seams, "expired_cells": &r.ExpiredCells, "read_again": &r.ReadAgain,
		"read_waits": &r.ReadWaits, "send_waits": &r.SendWaits,
	}
}

// Resume takes over the counts of earlier attempts.
func (r *Counted) Resume(s *checkpoint.Snapshot) {
	for name, n := range r.lasting() {
		*n = s.Counters[name]
	}
	r.Attempts, r.Resumed = s.Attempt+1, true
	r.Since = s.Begun
	r.Unfinished = r.Read - r.Final() // until complete sets it
	r.WrittenBefore = r.Written
	if s.Ordered && len(s.Starts) > 0 {
		r.BytesRead = s.Starts[0].Bytes // later records are read again
	}
}
