package reader

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sort"

	"tsimport/reader/parquet"
)

// Place is where a record begins in a source.
type Place struct {
	Record int64 // records before it
	Line   int64 // lines before it
	Offset int64 // bytes of the decompressed text before it
}

// Seek makes Next begin at a place that an earlier reading of the same input came to. It is to be called before the load's
// first Next. A file that is not compressed begins there, Parquet with the row group that holds the record; of all others
// what comes before is read and dropped. Known is what a stream was; reading fails where it differs.
func (s *Source) Seek(to Place, known Chain) {
	s.begin = &to
	if s.chain != nil {
		s.chain.expect(known)
	}
	r := s.reader
	if r == nil {
		return
	}
	// A stream, whose first chunk was looked at.
	skip := to.Offset - s.text.offset
	r.offset, r.number = to.Offset, 1
	if p := r.back; p != nil {
		skip += s.text.offset
		n := min(skip, int64(len(p.data)))
		p.data, p.first = p.data[n:], false
		skip -= n
		if len(p.data) == 0 {
			r.back = nil
		}
	}
	r.skip = skip
}

// Begin returns the place with which Next begins. Of a source that was sought it is known when the first piece is there.
func (s *Source) Begin() Place {
	if s.begin != nil {
		return *s.begin
	}
	return Place{Line: int64(s.text.lines), Offset: s.text.offset}
}

// Chain returns what is known of a stream's text as far as it was read, and false for sources that are no streams. It is safe
// to call while the source is read.
func (s *Source) Chain() (Chain, bool) {
	if s.chain == nil {
		return Chain{}, false
	}
	return s.chain.chain(), true
}

// seekRows finds the split of Parquet that holds the record that is sought.
func (s *Source) seekRows() {
	if s.begin == nil {
		return
	}
	splits := s.file.Splits()
	s.next = sort.Search(len(splits), func(i int) bool { return splits[i].FirstRow+splits[i].Rows > s.begin.Record })
	s.begin = &Place{Record: s.file.Rows()}
	if s.next < len(splits) {
		s.begin.Record = splits[s.next].FirstRow
	}
}

// seekText begins a new reading of the text at the place that is sought.
func (r *textReader) seekText() {
	s := r.s
	if s.begin == nil {
		return
	}
	r.offset, r.number = s.begin.Offset, 1
	switch skip := s.begin.Offset - s.text.offset; {
	case r.stream != nil:
		r.skip = skip
	case r.cutter != nil:
		r.drop = skip
	default:
		r.next = s.begin.Offset
	}
}

// pass reads over what comes before the place that is sought.
func (r *textReader) pass(p *Piece) error {
	n := r.skip
	if p.first {
		n += r.s.text.offset // the header
	}
	p.first = false
	r.skip = 0
	to := io.Discard
	if r.s.chain != nil {
		to = r.s.chain
	}
	switch _, err := io.CopyN(to, r.stream, n); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("read %s: it ends before the place that the run has come to; give the same input, or start over with --fresh", r.s.Name)
	default:
		return err
	}
}

// dropped drops what a piece has of the text before the place that is sought, and reports whether that is all of it.
func (r *textReader) dropped(p *Piece) bool {
	n := min(r.drop, int64(len(p.data)))
	if n == 0 {
		return false
	}
	r.drop -= n
	p.data = p.data[n:]
	if r.s.parallel() && len(p.data) > 0 {
		p.scan = r.s.Dialect.Scan(p.data)
	}
	return len(p.data) == 0
}

// Sizes of the parts of a file that its fingerprint is made of.
const (
	printEnds    = 64 << 10 // at the beginning and the end
	printSamples = 16
	printSample  = 4 << 10
)

// Fingerprint returns a hash of the source's content that is cheap to make: of a file that can be read anywhere of its
// head, its tail and a sample, of all others of their head. Remote files state a version, which says more; of them too
// nothing but the head is read.
func (s *Source) Fingerprint() (string, error) {
	sum := sha256.New()
	switch {
	case !s.item.Seekable():
		sum.Write(s.text.head)
	case s.item.Local() || s.item.Version == "":
		at, err := s.item.OpenAt(s.ctx)
		if err != nil {
			return "", err
		}
		err = printParts(sum, at, s.Size)
		if err = errors.Join(err, at.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func printParts(to io.Writer, at io.ReaderAt, size int64) error {
	part := func(from, length int64) error {
		from = max(from, 0)
		_, err := io.Copy(to, io.NewSectionReader(at, from, min(length, size-from)))
		return err
	}
	err := errors.Join(part(0, printEnds), part(size-printEnds, printEnds))
	for i := range int64(printSamples) {
		err = errors.Join(err, part(size/printSamples*i, printSample))
	}
	return err
}

// Version differs when the input was changed: the time of a file's last change, what a server says, empty if unknown.
func (s *Source) Version() string { return s.item.Version }

// openRows opens the file of Parquet for a reading of its rows.
func (s *Source) openRows() (err error) {
	s.file, err = parquet.Open(s.at, s.Size, s.Name, parquet.Options{Flatten: s.o.Flatten, MaxFooter: s.o.Memory.PageBytes / 8})
	return err
}
