package reader

import (
	"bytes"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// maxLongBytes is the length in bytes up to which a record's end is searched. Beyond it, a quote must be unclosed.
const maxLongBytes = 1 << 30

// longRecord is a record longer than the limit. Only the beginning of its text is kept.
type longRecord struct {
	offset int64 // in the text
	bytes  int64
	lines  int
	head   []byte
	limit  int
}

func (l *longRecord) add(text []byte, d *csv.Dialect) {
	l.bytes += int64(len(text))
	l.lines += d.Lines(text)
}

func (l *longRecord) record() *record.Record {
	message := fmt.Sprintf("the record has %d bytes, more than %d MiB; its text is not kept", l.bytes, l.limit>>20)
	if l.limit < MaxRecordBytes {
		message = fmt.Sprintf("the record has %d bytes, above %d MiB (--memory); its text is not kept", l.bytes, l.limit>>20)
	}
	if l.lines > 1 {
		message += fmt.Sprintf("; it has %d lines: if a quote never closes, these are unread records", l.lines)
	}
	return &record.Record{
		Span: table.Span{End: uint32(l.bytes)}, // at most maxLongBytes and a piece
		Bad:  &table.Reason{Code: table.CodeRecordTooLong, Message: message, Value: table.Show(l.head)},
	}
}

// raw returns what the rejects have in place of the record: a broken record, which cannot be loaded, or nothing.
func (l *longRecord) raw(s *File) []byte {
	if s.form.broken == nil {
		return []byte{}
	}
	return s.form.broken(fmt.Sprintf("%d bytes at byte %d, left out", l.bytes, l.offset))
}

// longIn returns the record at m if it is longer than the limit, even if the split holds it; otherwise nil.
func (s *File) longIn(sp source.Split, m table.Span) *longRecord {
	limit := s.o.Memory.record()
	if int(m.End-m.Start) <= limit || !s.parallel() {
		return nil
	}
	text := sp.Data[m.Start:m.End]
	l := &longRecord{offset: sp.Offset + int64(m.Start), limit: limit, head: text[:min(len(text), table.MaxShownBytes+1)]}
	l.add(text, &s.Dialect)
	return l
}

// shorten rejects rec if it is longer than the limit.
func (s *File) shorten(sp source.Split, rec *record.Record) *record.Record {
	if l := s.longIn(sp, rec.Span); l != nil {
		rec.Bad = l.record().Bad
	}
	return rec
}

// addScanned adds the next scanned piece. It returns the splits that the piece completes. It skips overlong records.
func (r *textReader) addScanned(p *piece) ([]source.Split, error) {
	s := r.s
	var splits []source.Split
	if r.long == nil {
		data := r.stitcher.Add(p.data, p.scan)
		if s.o.Changes != nil && s.Stream() && (len(data) > 0 || r.stitcher.Pending() == len(p.data)) {
			// The next piece may arrive much later. The rest is copied, because the pieces of a slow pipe are much shorter
			// than their buffers.
			rest := r.stitcher.Rest()
			n := s.Dialect.LastEnd(rest)
			data = append(data, rest[:n]...)
			r.stitcher.Keep(bytes.Clone(rest[n:]))
			reuse(p.data)
		}
		splits = r.split(data)
		limit := s.o.Memory.record()
		if r.stitcher.Pending() <= limit {
			return splits, nil
		}
		pending := r.stitcher.Rest()
		n := s.Dialect.LastEnd(pending)
		splits = append(splits, r.split(pending[:n])...)
		if pending = pending[n:]; len(pending) <= limit {
			r.stitcher.Keep(bytes.Clone(pending))
			return splits, nil
		}
		r.long = &longRecord{offset: r.offset, limit: limit,
			head: bytes.Clone(pending[:min(len(pending), table.MaxShownBytes+1)])}
		r.long.add(pending, &s.Dialect)
		return splits, nil
	}
	n, ended := r.stitcher.Pass(p.data, p.scan)
	r.long.add(p.data[:n], &s.Dialect)
	if ended {
		return r.endLong(), nil
	}
	if r.long.bytes > maxLongBytes {
		return nil, r.endlessError()
	}
	reuse(p.data)
	return nil, nil
}

func (r *textReader) endLong() []source.Split {
	l := r.long
	r.long = nil
	sp := source.Split{Number: r.number, Offset: r.offset, Bytes: r.inputBytes(l.bytes), Part: l}
	r.number++
	r.offset += l.bytes
	return []source.Split{sp}
}

func (r *textReader) endlessError() error {
	return fmt.Errorf("read %s: the record at byte %d does not end within %d bytes; close its quote, or use --quote none",
		r.s.Name, r.long.offset, r.long.bytes)
}
