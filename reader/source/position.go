package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Positioned is an Origin that knows from where to follow the changes of its source.
type Positioned interface {
	Origin
	// Position returns the position of the last opened division. It is before the first read of a record by any process.
	Position() Position
}

// Position is a position from which no change of a source is missed. Some changes may have been read already.
type Position struct {
	ResumeFrom *Resume `json:"resume_from,omitempty"` // nil if changes cannot be followed
	// SafeSince is a time in RFC 3339. Transactions that were open at the position, or began later, began no earlier.
	// Their rows have no earlier times if the server sets them in the transaction. If unknown, it is Unknown and a reason.
	SafeSince string `json:"safe_since,omitempty"`
}

// Lead is the time by which a table's Position precedes reading. A cell without a timestamp gets the time at which the
// service takes the write, but is visible only when the request has ended: after at most two attempts of 30 seconds.
const Lead = time.Minute

// Unknown is the prefix of a SafeSince that is not a time.
const Unknown = "unknown: "

// Resume is a position in the changes of a source, in the source's own terms. If there is none, Unknown says why.
type Resume struct {
	File     string     `json:"file,omitempty"` // a binary log of MySQL or MariaDB
	Position uint64     `json:"position,omitempty"`
	GTID     string     `json:"gtid,omitempty"`
	LSN      string     `json:"lsn,omitempty"`  // PostgreSQL's log position
	Time     *time.Time `json:"time,omitempty"` // if there is no log, as for a table or an archive
	Unknown  string     `json:"unknown,omitempty"`
}

// ResumeAt returns the Resume for a time.
func ResumeAt(t time.Time) *Resume {
	t = t.UTC().Truncate(time.Millisecond)
	return &Resume{Time: &t}
}

// Before reports whether r is before o in the same log.
func (r *Resume) Before(o *Resume) bool {
	if r.Time != nil && o.Time != nil {
		return r.Time.Before(*o.Time)
	}
	number := func(of *Resume) uint64 {
		var high, low uint64
		_, _ = fmt.Sscanf(of.LSN, "%X/%X", &high, &low) // zeros if there is no LSN
		return of.Position | high<<32 | low
	}
	return cmp.Or(cmp.Compare(len(r.File), len(o.File)), cmp.Compare(r.File, o.File),
		cmp.Compare(number(r), number(o))) < 0
}

func (r *Resume) String() string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"file", r.File}, {"position", fmt.Sprint(r.Position)},
		{"GTID", r.GTID}, {"LSN", r.LSN}} {
		if part.value != "" && part.value != "0" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	switch {
	case r.Time != nil:
		return r.Time.Format(time.RFC3339Nano)
	case r.Unknown != "":
		return Unknown + r.Unknown
	}
	return strings.Join(parts, ", ")
}

// Follow returns the last line of a command's output, about following changes, or "" if they cannot be followed.
func (p Position) Follow() string {
	if p.ResumeFrom == nil {
		return ""
	}
	text := "to follow the source from here: resume_from " + p.ResumeFrom.String()
	if p.SafeSince != "" {
		text += "; safe_since " + p.SafeSince
	}
	return text
}

// Lasting is an error that would recur if the command were repeated, such as damaged input. Its exit code is Usage.
type Lasting struct{ Err error }

func (l *Lasting) Error() string { return l.Err.Error() }
func (l *Lasting) Unwrap() error { return l.Err }

// Exit returns the command's exit code (exitcode.Usage).
func (l *Lasting) Exit() int { return 2 }

// StartOver is the advice when an attempt cannot be resumed because its source, or the run's own files, have changed.
const StartOver = "start over with --fresh"

// Splits yields the remaining splits of a source, in order. An error is yielded after the splits before it.
func Splits(s Source) iter.Seq2[Split, error] {
	return func(yield func(Split, error) bool) {
		for ended := false; !ended; {
			var splits []Split
			piece, err := s.Next()
			switch {
			case err == nil:
				prepareErr := piece.Prepare()
				splits, err = s.Add(piece)
				err = errors.Join(prepareErr, err)
			case errors.Is(err, io.EOF):
				splits, err = s.Finish()
				ended = true
			default:
				splits = s.Whole()
			}
			for _, split := range splits {
				if !yield(split, nil) {
					return
				}
			}
			if err != nil {
				yield(Split{}, err)
				return
			}
		}
	}
}
