package table

import (
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// MaxMarkBytes limits a mark: job (12 characters), run (15), two numbers (13 each), checksum (7) and separators.
const MaxMarkBytes = 64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Marker makes the marks of one run. Loads of the same inputs into a table share Job; attempts of one load also share
// Run.
type Marker struct{ Job, Run string }

// NewRun returns a name for a run that begins now. The names of later runs sort after it.
func NewRun(now time.Time) string {
	return fmt.Sprintf("%09s%.6s", strconv.FormatInt(now.UnixMilli(), 36), strings.ToLower(rand.Text()))
}

// Append appends the row's mark: text with its job, run, source and record, and a checksum of the row's bytes. The
// checksum distinguishes the row from an earlier one in the same place if the input has changed.
func (m Marker) Append(dst []byte, r Ref) []byte {
	dst = append(append(dst, m.Job...), '.')
	dst = append(append(dst, m.Run...), '.')
	dst = append(strconv.AppendInt(dst, int64(r.Block.Split.Ordinal), 36), '.')
	dst = append(strconv.AppendInt(dst, r.Number(), 36), '.')
	return strconv.AppendUint(dst, uint64(crc32.Checksum(r.Body(), castagnoli)), 36)
}

// Marked is the content of a mark.
type Marked struct {
	Job, Run string // Run is empty in marks of earlier versions, which did not write it
	Source   int
	Record   int64
	Sum      uint32
}

// ParseMark parses a mark; ok is false if the text is not one.
func ParseMark(text string) (m Marked, ok bool) {
	parts := strings.Split(text, ".")
	switch len(parts) {
	case 4:
	case 5:
		m.Run = parts[1]
		parts = append(parts[:1], parts[2:]...)
	default:
		return m, false
	}
	m.Job = parts[0]
	source, err1 := strconv.ParseInt(parts[1], 36, 32)
	record, err2 := strconv.ParseInt(parts[2], 36, 64)
	sum, err3 := strconv.ParseUint(parts[3], 36, 32)
	m.Source, m.Record, m.Sum = int(source), record, uint32(sum)
	return m, err1 == nil && err2 == nil && err3 == nil && m.Job != ""
}

// SameRecord reports whether two marks are equal except for their runs.
func (m Marked) SameRecord(o Marked) bool {
	m.Run, o.Run = "", ""
	return m == o
}
