package ledger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/writer"
)

// stamps makes the timestamps of updates and remembers them. An attempt that resumes gives a row that may have been
// applied its former timestamp, so that it leaves one version, and every other row a newer timestamp.
//
// Timestamps are written below the run folder before their request is sent. Each checkpoint begins a file, with the
// rows that are in flight or wait for a retry. So rows that it cannot tell from unsent ones are in this file or in
// later ones. Files are not synced for each request: a killed process loses nothing, but after a crash of the machine a
// row may get a second, equal version.
//
// A repeated row that deletes columns may have deleted what later rows of its key had written, and may hide what these
// write with their first timestamps. So its key is in the files of checkpoints that know the row as final.
type stamps struct {
	*writer.Stamps
	dir  string
	file *os.File

	number        int64                         // number of the current file
	from          int64                         // first file that the checkpoint being made needs
	needed, spare int64                         // first files that the last checkpoint and the previous one need
	earlier       []stamp                       // stamps of earlier attempts, by position
	passed        map[checkpoint.Position]int64 // timestamps up to which cells may be hidden, by ofKey
	buf           []byte
}

// StampFiles names the checkpoint counter for the first file that the checkpoint needs.
const StampFiles = "stamp_files"

// stamp is the timestamp, in milliseconds, with which a row was sent.
type stamp struct {
	at checkpoint.Position
	ms int64
}

// ofKey represents a key as a position with an impossible ordinal. Two keys that share one both get new timestamps.
func ofKey(r table.Ref) checkpoint.Position {
	h := fnv.New64a()
	h.Write(r.Key())
	return checkpoint.Position(h.Sum64() | keys)
}

const keys = 1 << 63

// OpenStamps opens the folder. need is the first valid file, or 0 in the first attempt.
func OpenStamps(dir string, need int64, source *writer.Stamps) (*stamps, error) {
	s := &stamps{Stamps: source, dir: dir, number: need, needed: need, spare: need, from: need,
		passed: map[checkpoint.Position]int64{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep timestamps of updates: %w", err)
	}
	numbers, err := s.files()
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		s.number = max(s.number, n)
		if need == 0 || n < need {
			continue
		}
		text, err := os.ReadFile(s.path(n))
		if err != nil {
			return nil, fmt.Errorf("read timestamps of updates: %w", err)
		}
		s.earlier = appendStamps(s.earlier, text)
	}
	// If a row has two stamps, the later one counts.
	slices.Reverse(s.earlier)
	slices.SortStableFunc(s.earlier, func(a, b stamp) int { return cmp.Compare(a.at, b.at) })
	s.earlier = slices.CompactFunc(s.earlier, func(a, b stamp) bool { return a.at == b.at })
	rows := slices.IndexFunc(s.earlier, func(e stamp) bool { return e.at >= keys })
	if rows >= 0 {
		for _, e := range s.earlier[rows:] {
			s.passed[e.at] = e.ms
		}
		s.earlier = s.earlier[:rows]
	}
	return s, nil
}

func (s *stamps) files() (numbers []int64, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list timestamps of updates: %w", err)
	}
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func (s *stamps) path(n int64) string { return filepath.Join(s.dir, strconv.FormatInt(n, 10)) }

// Kept returns the timestamp with which an earlier attempt sent a row, 0 if none or if its cells may be hidden.
func (s *stamps) Kept(r table.Ref) int64 {
	i, found := slices.BinarySearchFunc(s.earlier, keep.PositionOf(r),
		func(e stamp, at checkpoint.Position) int { return cmp.Compare(e.at, at) })
	if !found || len(s.passed) > 0 && s.earlier[i].ms <= s.passed[ofKey(r)] {
		return 0
	}
	return s.earlier[i].ms
}

// Passed notes that a row that may have been repeated is final, and may hide its key's cells up to the timestamp.
func (s *stamps) Passed(r table.Ref, ms int64) { s.passed[ofKey(r)] = ms }

// Sending stores the timestamps of a flight that is about to be sent.
func (s *stamps) Sending(f *partitioner.Flight) error {
	if s == nil {
		return nil
	}
	rows := make([]stamp, 0, len(f.Rows))
	for i, r := range f.Rows {
		if !f.Repeated[i] || f.Outcomes[i].Stamp != s.Kept(r) {
			rows = append(rows, stamp{keep.PositionOf(r), f.Outcomes[i].Stamp})
		}
	}
	return s.write(rows)
}

func (s *stamps) write(rows []stamp) error {
	if s.file == nil || len(rows) == 0 {
		return nil // a load without checkpoints keeps nothing
	}
	s.buf = encodeStamps(s.buf[:0], rows)
	if _, err := s.file.Write(s.buf); err != nil {
		return fmt.Errorf("keep timestamps of updates: %w", err)
	}
	return nil
}

// Begin begins the file of a checkpoint, with the rows in flight. whole means that nothing is left of earlier attempts.
func (s *stamps) Begin(c *partitioner.Cutter, whole bool) error {
	if s == nil {
		return nil
	}
	err := s.Close()
	if err == nil {
		s.number++
		s.file, err = os.OpenFile(s.path(s.number), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep timestamps of updates: %w", err)
	}
	if whole || s.from == 0 {
		s.from = s.number
	}
	if whole {
		clear(s.passed)
	}
	var rows []stamp
	for key, ms := range s.passed {
		rows = append(rows, stamp{key, ms})
	}
	c.Stamped(func(r table.Ref, ms int64) { rows = append(rows, stamp{keep.PositionOf(r), ms}) })
	return s.write(rows)
}

// Forget removes files that neither the latest checkpoint nor the previous one needs.
func (s *stamps) Forget() error {
	if s == nil {
		return nil
	}
	s.spare, s.needed = s.needed, s.from
	numbers, err := s.files()
	for _, n := range numbers {
		if n < min(s.spare, s.needed) {
			err = errors.Join(err, os.Remove(s.path(n)))
		}
	}
	return err
}

func (s *stamps) Close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Remove removes the files of a finished load.
func (s *stamps) Remove() error {
	if s == nil {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// encodeStamps appends a record: its length and checksum, then the rows, each as its difference from the previous one.
func encodeStamps(dst []byte, rows []stamp) []byte {
	from := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	last := stamp{}
	for _, r := range rows {
		dst = binary.AppendVarint(dst, int64(r.at-last.at))
		dst = binary.AppendVarint(dst, r.ms-last.ms)
		last = r
	}
	body := dst[from+8:]
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(body)))
	binary.LittleEndian.PutUint32(dst[from+4:], crc32.ChecksumIEEE(body))
	return dst
}

// appendStamps appends the rows of a file's records, up to a damaged one, whose rows were not sent or are lost.
func appendStamps(dst []stamp, text []byte) []stamp {
	for len(text) >= 8 {
		n, sum := binary.LittleEndian.Uint32(text), binary.LittleEndian.Uint32(text[4:])
		if text = text[8:]; uint64(n) > uint64(len(text)) || n == 0 || crc32.ChecksumIEEE(text[:n]) != sum {
			return dst
		}
		body := text[:n]
		text = text[n:]
		last := stamp{}
		for len(body) > 0 {
			at, i := binary.Varint(body)
			ms, j := binary.Varint(body[max(i, 0):])
			if i <= 0 || j <= 0 {
				return dst
			}
			last = stamp{last.at + checkpoint.Position(at), last.ms + ms}
			dst = append(dst, last)
			body = body[i+j:]
		}
	}
	return dst
}
