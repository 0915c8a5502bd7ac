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

// Positioned is an Origin whose source others write to, and which may be followed.
type Positioned interface {
	Origin
	// Position returns the last opened division's, from a moment before any process read its records.
	Position() Position
}

// Position is the place where following a source misses no changes. Earlier ones may come again.
type Position struct {
	ResumeFrom *Resume `json:"resume_from,omitempty"` // nil if nothing can be followed
	// SafeSince is a time in RFC 3339. No transaction that was open at the position or began later began before it; their
	// rows have later times if the server sets them inside the transaction. If it is not known: Unknown and why.
	SafeSince string `json:"safe_since,omitempty"`
}

// Lead is the time by which a Position precedes the reading of its table. A cell without a timestamp gets the service's
// time when the service takes its write, and is visible when the request has ended: after two tries of 30 seconds.
const Lead = time.Minute

// Unknown begins a SafeSince that is not a time.
const Unknown = "unknown: "

// Resume is a place among a source's changes, in its terms. It has all that is known; Unknown says why nothing is.
type Resume struct {
	File     string     `json:"file,omitempty"` // of a MySQL's or MariaDB's binary log
	Position uint64     `json:"position,omitempty"`
	GTID     string     `json:"gtid,omitempty"`
	LSN      string     `json:"lsn,omitempty"`  // of a PostgreSQL
	Time     *time.Time `json:"time,omitempty"` // of a table, an archive or an export
	Unknown  string     `json:"unknown,omitempty"`
}

// ResumeAt returns a time as a Resume.
func ResumeAt(t time.Time) *Resume {
	t = t.UTC().Truncate(time.Millisecond)
	return &Resume{Time: &t}
}

// Before reports whether a place comes before another one of the same log.
func (r *Resume) Before(o *Resume) bool {
	if r.Time != nil && o.Time != nil {
		return r.Time.Before(*o.Time)
	}
	number := func(of *Resume) uint64 {
		var high, low uint64
		_, _ = fmt.Sscanf(of.LSN, "%X/%X", &high, &low) // zeros otherwise
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

// Follow is a command's last line, empty if there is nothing to follow.
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

// Lasting is an error that the same command would meet again, such as damaged input: the exit code is wrong usage's.
type Lasting struct{ Err error }

func (l *Lasting) Error() string { return l.Err.Error() }
func (l *Lasting) Unwrap() error { return l.Err }

// Exit is the command's exit code (exitcode.Usage).
func (l *Lasting) Exit() int { return 2 }

// StartOver is the advice for an attempt that cannot be resumed because its source, or its own files, have changed.
const StartOver = "start over with --fresh"

// Splits yields the rest of a source, in order and one at a time. An error ends it, after the splits before it.
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
