package reader

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/source"
)

// Seek makes Next begin at a place that an earlier reading of the same input reached. Call it before the load's first
// Next. Inputs that seek by reading are read from the start, and what precedes the place is dropped. known has the sums
// of a stream's earlier content; reading fails if the content differs.
func (s *File) Seek(to source.Place, known source.Chain) {
	s.begin = &to
	if s.chain != nil {
		s.chain.expect(known)
	}
	r := s.reader
	if r == nil {
		return
	}
	// The reader is open if the first chunk of a stream was sampled.
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

func (s *File) seeking() source.Seeking {
	if s.file != nil || s.inOrder == nil && s.Compression == compress.None && s.item.Seekable() && !s.text.transcode {
		return source.SeeksDirectly
	}
	return source.SeeksByReading
}

// Begin returns the place where Next begins. After Seek, it is known once the first piece has been read.
func (s *File) Begin() source.Place {
	if s.begin != nil {
		return *s.begin
	}
	return source.Place{Line: int64(s.text.lines), Offset: s.text.offset}
}

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

// pass skips a stream up to the sought place.
func (r *textReader) pass(p *piece) error {
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
	_, err := io.CopyN(to, r.stream, n)
	r.counted = r.packed.n
	if errors.Is(err, io.EOF) {
		return r.s.endsBefore()
	}
	return err
}

func (s *File) endsBefore() error {
	return fmt.Errorf("read %s: it ends before the run's position; give the same input, or "+source.StartOver, s.Name)
}

// dropped removes the text of a piece before the sought place. It reports whether nothing is left.
func (r *textReader) dropped(p *piece) bool {
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

// Sizes of the parts of a file that the fingerprint covers.
const (
	printEnds    = 64 << 10 // bytes at the start, and as many at the end
	printSamples = 16       // evenly spread
	printSample  = 4 << 10  // bytes of a sample
)

// Identity identifies the source. Its Version is a file's modification time or a server's version.
func (s *File) Identity() (source.Identity, error) {
	content, err := s.fingerprint()
	return source.Identity{Bytes: s.Size, Version: s.item.Version, Content: content}, err
}

// fingerprint hashes parts of the content: head, tail and samples of a file, the head of a stream, up to the first
// change if it has changes, and nothing of an object whose server states a version.
func (s *File) fingerprint() (string, error) {
	sum := sha256.New()
	switch {
	case !s.item.Seekable():
		_, changes := s.Format.(*changeFormat)
		for line := range bytes.Lines(s.text.head) {
			sum.Write(line)
			if changes && s.holdsChange(line) {
				break // the number of bytes read from a pipe varies
			}
		}
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
	if size <= printEnds { // read the file at once instead of part by part
		whole := make([]byte, size)
		n, err := at.ReadAt(whole, 0)
		if err != nil && err != io.EOF {
			return err
		}
		at = bytes.NewReader(whole[:n])
	}
	buffer := make([]byte, max(1, min(size, 32<<10)))
	part := func(from, length int64) error {
		from = max(from, 0)
		_, err := io.CopyBuffer(to, io.NewSectionReader(at, from, min(length, size-from)), buffer)
		return err
	}
	err := errors.Join(part(0, printEnds), part(size-printEnds, printEnds))
	for i := range int64(printSamples) {
		err = errors.Join(err, part(size/printSamples*i, printSample))
	}
	return err
}
