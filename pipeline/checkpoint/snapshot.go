package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/table"
)

// Snapshot is the state of a load at one moment.
type Snapshot struct {
	About
	State
}

// About is everything in a snapshot except the State. Its many fields form the JSON at the file's start.
type About struct {
	Job     string    `json:"job"` // Job.Identity
	Time    time.Time `json:"time"`
	Attempt int       `json:"attempt"` // number of the attempt, from 1
	Begun   time.Time `json:"begun"`   // when the first attempt began
	Ordered bool      `json:"ordered"` // rows of a key are written in source order
	// Settled means that no attempt to write a row is in flight or may still be applied.
	Settled bool `json:"settled"`
	// Settle is the time for which an attempt of unknown outcome may still be applied.
	Settle time.Duration `json:"settle"`
	// Uptime is the same moment as Time, by a clock that the next attempt can compare with its own.
	Uptime
	// HoldFor is the time after Time in which requests for keys without a row in Out may be applied. Nothing is sent then.
	HoldFor time.Duration `json:"hold_for,omitempty"`

	// Tables holds each table's creation time, in µs of the service's clock. A table with a later one lacks the rows.
	Tables map[string]int64 `json:"tables,omitempty"`

	Counters map[string]int64 `json:"counters"`
	Files    map[string]int64 `json:"files"` // valid bytes of the run folder's files
	// Sums are the CRC-32C sums of the valid parts of the run folder's reject files.
	Sums   map[string]uint32 `json:"sums,omitempty"`
	Starts []Start           `json:"starts,omitempty"`
	Chains []Chain           `json:"chains,omitempty"`
	// Moments holds when live sources were read.
	Moments []Moment `json:"moments,omitempty"`
	// Snapshots are the snapshots of a live source that all attempts have read, as in the report.
	Snapshots json.RawMessage `json:"snapshots,omitempty"`

	// Bad has the inputs that were set aside.
	Bad []BadInput `json:"bad,omitempty"`

	Older bool `json:"-"` // a newer snapshot is damaged: see Read
}

// BadInput is an input that was set aside because its content cannot be loaded as requested.
type BadInput struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Read   int64  `json:"read"`             // records read
	Nights int    `json:"nights,omitempty"` // number of nightly loads that set this content aside
	Held   bool   `json:"held,omitempty"`   // set aside until its content or the limit of rejects changes
	Sent   bool   `json:"sent,omitempty"`   // rows of it that may not be sent twice may be in the table
	Source int    `json:"source"`           // ordinal of its source; -1 if it was not opened
	// Rejected counts the rejects of an input that is held because it has more of them than the limit allows.
	Rejected int64 `json:"rejected,omitempty"`
}

// Start is a position in a source at which a record begins.
type Start struct {
	Source int   `json:"source"`
	Record int64 `json:"record"` // records before it
	Line   int64 `json:"line"`   // lines before it
	Offset int64 `json:"offset"` // bytes of the decompressed text before it
	Bytes  int64 `json:"bytes"`  // bytes of all inputs read before it
	// Key is the place in the source, if places are keys.
	Key []byte `json:"key,omitempty"`
}

// Moment is the time during which all attempts read a live source, in Unix milliseconds of this machine's clock.
type Moment struct {
	Source int   `json:"source"`
	From   int64 `json:"from"`
	To     int64 `json:"to"`
}

// Chain identifies the part of a stream that was read.
type Chain struct {
	Source int      `json:"source"`
	Every  int64    `json:"every"` // bytes between sums
	Sums   []uint64 `json:"sums"`  // sums of all bytes before each positive multiple of Every
}

// A file has the magic, the version, the length and CRC-32C of a zstd frame, and the frame. The frame has the length of
// About's JSON, the JSON and the sets. Numbers are varints. Positions are distances from the previous one. Keys are the
// length shared with the previous key, and the rest.
const (
	magic      = "tsimport checkpoint\n"
	version    = 1
	headBytes  = len(magic) + 1 + 4 + 4
	maxUnpacks = 256 << 20 // maximum bytes of the frame's content, as a damaged file may claim more
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode returns the snapshot in the form of a file.
func (s *Snapshot) Encode() ([]byte, error) {
	about, err := json.Marshal(&s.About)
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	raw := binary.AppendUvarint(nil, uint64(len(about)))
	raw = append(raw, about...)
	raw = appendSet(appendSet(raw, s.Read), s.Out)
	raw = binary.AppendUvarint(raw, uint64(len(s.Pieces)))
	var before []byte
	for _, p := range s.Pieces {
		shared := table.SharedPrefix(before, p.Lower)
		raw = binary.AppendUvarint(raw, uint64(shared))
		raw = binary.AppendUvarint(raw, uint64(len(p.Lower)-shared))
		raw = append(raw, p.Lower[shared:]...)
		raw = binary.AppendUvarint(raw, uint64(p.Allowance))
		raw = appendSet(raw, p.Waiting)
		before = p.Lower
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	file := make([]byte, headBytes, headBytes+len(raw)/2)
	file = z.EncodeAll(raw, file)
	copy(file, magic)
	file[len(magic)] = version
	binary.LittleEndian.PutUint32(file[len(magic)+1:], uint32(len(file)-headBytes))
	binary.LittleEndian.PutUint32(file[len(magic)+5:], crc32.Checksum(file[headBytes:], castagnoli))
	return file, nil
}

func appendSet(dst []byte, s Set) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	last := Position(0)
	for _, i := range s {
		dst = binary.AppendUvarint(dst, uint64(i.From-last))
		dst = binary.AppendUvarint(dst, uint64(i.To-i.From))
		last = i.To
	}
	return dst
}

// errDamaged means that a file is incomplete or was changed.
var errDamaged = errors.New("the file is cut short or damaged")

// Decode reads a file written by Encode.
func Decode(file []byte) (*Snapshot, error) {
	if len(file) < headBytes || string(file[:len(magic)]) != magic {
		return nil, errDamaged
	}
	if v := file[len(magic)]; v != version {
		return nil, fmt.Errorf("the file has version %d, but this tsimport reads version %d", v, version)
	}
	packed := file[headBytes:]
	if uint64(len(packed)) != uint64(binary.LittleEndian.Uint32(file[len(magic)+1:])) ||
		crc32.Checksum(packed, castagnoli) != binary.LittleEndian.Uint32(file[len(magic)+5:]) {
		return nil, errDamaged
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacks))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	raw, err := z.DecodeAll(packed, nil)
	if err != nil {
		return nil, errDamaged
	}
	return decodeRaw(raw)
}

func decodeRaw(raw []byte) (*Snapshot, error) {
	d := decoder{rest: raw}
	s := new(Snapshot)
	if about := d.bytes(); d.bad || json.Unmarshal(about, &s.About) != nil {
		return nil, errDamaged
	}
	s.Read, s.Out = d.set(), d.set()
	n := d.number()
	if n == 0 || n > uint64(len(d.rest)) {
		return nil, errDamaged
	}
	var before []byte
	for i := range n {
		shared := d.number()
		if shared > uint64(len(before)) {
			return nil, errDamaged
		}
		rest := d.bytes()
		p := Piece{Lower: append(before[:shared:shared], rest...)}
		allowance := d.number()
		p.Allowance, p.Waiting = int64(allowance), d.set()
		if d.bad || allowance > math.MaxInt64 || (i == 0) != (len(p.Lower) == 0) || i > 0 &&
			string(p.Lower) <= string(before) {
			return nil, errDamaged
		}
		s.Pieces = append(s.Pieces, p)
		before = p.Lower
	}
	if len(d.rest) > 0 {
		return nil, errDamaged
	}
	return s, nil
}

type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) set() Set {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	var s Set
	last := Position(0)
	for i := range n {
		gap, size := d.number(), d.number()
		from := last + Position(gap)
		to := from + Position(size)
		if d.bad || from < last || to <= from || i > 0 && gap == 0 {
			d.bad = true
			return nil
		}
		s = append(s, Interval{from, to})
		last = to
	}
	return s
}
