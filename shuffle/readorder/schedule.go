package readorder

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// Schedule is the reading order of some consecutive sources.
type Schedule struct {
	Source   int       // first one
	Sources  int       // number of them
	Sections []Section // in reading order; without keys
}

// Make returns a schedule that reads sections in the given order. They are from sources sources, beginning with source.
func Make(source, sources int, sections []Section, order []int32) *Schedule {
	s := &Schedule{Source: source, Sources: sources, Sections: make([]Section, len(order))}
	for k, i := range order {
		s.Sections[k] = sections[i]
		s.Sections[k].Keys = nil
	}
	return s
}

// Records returns the number of records of all sections.
func (s *Schedule) Records() (n int64) {
	for i := range s.Sections {
		n += s.Sections[i].Records
	}
	return n
}

// Held returns the schedule's memory in bytes.
func (s *Schedule) Held() int64 { return int64(len(s.Sections)) * int64(unsafe.Sizeof(Section{})) }

const magic = "tsimport reading order 1\n"

func Encode(all []*Schedule) []byte {
	b := binary.AppendUvarint([]byte(magic), uint64(len(all)))
	for _, s := range all {
		b = binary.AppendUvarint(b, uint64(s.Source))
		b = binary.AppendUvarint(b, uint64(s.Sources))
		b = binary.AppendUvarint(b, uint64(len(s.Sections)))
		for i := range s.Sections {
			one := &s.Sections[i]
			b = binary.AppendUvarint(b, uint64(one.Source))
			for _, n := range []int64{one.Record, one.Records, one.Line, one.Lines, one.Offset, one.Bytes, one.Sum.Bytes} {
				b = binary.AppendUvarint(b, uint64(n))
			}
			b = binary.LittleEndian.AppendUint64(b, one.Sum.Value)
		}
	}
	return b
}

var errDamaged = errors.New("the file is damaged, or from another version of tsimport")

func Decode(file []byte) ([]*Schedule, error) {
	if len(file) < len(magic) || string(file[:len(magic)]) != magic {
		return nil, errDamaged
	}
	d := decoder{rest: file[len(magic):]}
	var all []*Schedule
	for range d.count() {
		s := &Schedule{Source: int(d.number()), Sources: int(d.number())}
		for range d.count() {
			one := Section{Source: int(d.number())}
			for _, n := range []*int64{&one.Record, &one.Records, &one.Line, &one.Lines, &one.Offset, &one.Bytes,
				&one.Sum.Bytes} {
				*n = int64(d.number())
			}
			one.Sum.Value = d.fixed()
			if one.Source < s.Source || one.Source >= s.Source+s.Sources {
				d.bad = true
			}
			if d.bad {
				return nil, errDamaged
			}
			s.Sections = append(s.Sections, one)
		}
		if d.bad {
			return nil, errDamaged
		}
		all = append(all, s)
	}
	if d.bad || len(d.rest) > 0 {
		return nil, errDamaged
	}
	return all, nil
}

type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > 1<<62 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads the number of following elements, each of at least one byte.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad, n = true, 0
	}
	return n
}

func (d *decoder) fixed() uint64 {
	if len(d.rest) < 8 {
		d.bad, d.rest = true, nil
		return 0
	}
	v := binary.LittleEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return v
}
