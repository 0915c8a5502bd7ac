package source

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Positioned is an Origin whose source others write to, and may be followed.
type Positioned interface {
	Origin
	// Position is that of the division that was opened last: of a moment before any of its records was read, in any process.
	Position() Position
}

// Position says from where a source is followed so that no change is missed that its records lack. Earlier changes may come again.
type Position struct {
	ResumeFrom *Resume `json:"resume_from,omitempty"` // nil where nothing can be followed
	// SafeSince is a time in RFC 3339: no transaction that was open, or began later, began before it. Rows that it wrote have times from then on,
	// where the server sets them inside the transaction. Else it is Unknown and why.
	SafeSince string `json:"safe_since,omitempty"`
}

// Lead is how much earlier than the reading of a table begins its Position is. A cell without a timestamp of its own gets the service's time when
// the service takes its write, and is there to be read when the request has ended: at the latest after two tries, of 30 seconds each.
const Lead = time.Minute

// Unknown begins a SafeSince that is not a time.
const Unknown = "unknown: "

// Resume is a place among the changes of a source, as the source names it. It has what is known; Unknown says why nothing is.
type Resume struct {
	File     string     `json:"file,omitempty"` // of a MySQL's or MariaDB's binary log
	Position uint64     `json:"position,omitempty"`
	GTID     string     `json:"gtid,omitempty"`
	LSN      string     `json:"lsn,omitempty"`  // of a PostgreSQL
	Time     *time.Time `json:"time,omitempty"` // of a table, an archive or an export
	Unknown  string     `json:"unknown,omitempty"`
}

// ResumeAt is a time as a Resume.
func ResumeAt(t time.Time) *Resume {
	t = t.UTC().Truncate(time.Millisecond)
	return &Resume{Time: &t}
}

func (r *Resume) String() string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"file", r.File}, {"position", fmt.Sprint(r.Position)}, {"GTID", r.GTID}, {"LSN", r.LSN}} {
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

// Follow is the line that a command ends with, empty where there is nothing to follow.
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

// Lasting is an error that the same command would meet again: the input is damaged, or its server refuses the request. The input has to
// change, so the exit code is that of wrong usage.
type Lasting struct{ Err error }

func (l *Lasting) Error() string { return l.Err.Error() }
func (l *Lasting) Unwrap() error { return l.Err }

// Exit is the code of a command that ends so (exitcode.Usage).
func (l *Lasting) Exit() int { return 2 }

// StartOver is what to do about an attempt that cannot be resumed: its source, or what it has kept, is not what it was.
const StartOver = "start over with --fresh"

// Splits are what is left of a source, in its order and one at a time. An error ends them; what comes before it is delivered before it.
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
