package rundir

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"example.com/tsimport/internal/table"
)

// Reason is one line of ReasonsFile: the place of a rejected record, and why it was rejected.
type Reason struct {
	File    string `json:"file"`
	Record  int64  `json:"record"`
	Line    int64  `json:"line"`
	Offset  int64  `json:"offset"`
	Key     string `json:"from_key,omitempty"` // key of the record or the one before, if places are keys
	Column  string `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Value   string `json:"value,omitempty"`
	// MaybeApplied means that the row may be in the table, as the service never answered whether it was written.
	MaybeApplied bool `json:"maybe_applied,omitempty"`
}

// ReasonOf returns the Reason of a reject.
func ReasonOf(r *table.Reject) Reason {
	return Reason{
		File: r.Location.Source, Record: r.Location.Record, Line: r.Location.Line, Offset: r.Location.Offset,
		Key: r.Location.Key, Column: r.Reason.Column, Code: r.Reason.Code, Message: r.Reason.Message, Value: r.Reason.Value,
		MaybeApplied: r.Reason.MaybeApplied,
	}
}

// ReasonCount is the number of records rejected with a code, and the reason of the first.
type ReasonCount struct {
	Code  string `json:"code"`
	Count int64  `json:"count"`
	First Reason `json:"first"`
}

// CountReasons counts, by code, the rejects of all attempts of the run in a folder. The most frequent code is first.
func CountReasons(path string) ([]ReasonCount, error) {
	var counts []ReasonCount
	at := map[string]int{} // indices in counts by code
	err := EachReason(path, func(r *Reason) {
		i, known := at[r.Code]
		if !known {
			i = len(counts)
			at[r.Code] = i
			counts = append(counts, ReasonCount{Code: r.Code, First: *r})
		}
		counts[i].Count++
	})
	slices.SortStableFunc(counts, func(a, b ReasonCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts, err
}

// EachReason calls each with the reason of every record rejected by the run in a folder.
func EachReason(path string, each func(*Reason)) error {
	f, err := os.Open(filepath.Join(path, ReasonsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read rejects: %w", err)
	}
	defer f.Close()
	for d, n := json.NewDecoder(bufio.NewReader(f)), 1; ; n++ {
		var line Reason
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read rejects: line %d of %s: %w", n, f.Name(), err)
		}
		each(&line)
	}
}
