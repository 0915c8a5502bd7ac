package compress

import (
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// byteSource has the methods that a gzip decoder needs to consume no more than the compressed data.
type byteSource interface {
	io.Reader
	io.ByteReader
	Peek(int) ([]byte, error)
}

// gzipReader reads members one by one, because compress/gzip would take zeros after a member for another member.
type gzipReader struct {
	src       byteSource
	member    *gzip.Reader
	inMember  bool
	continued bool // whether a member has been read before
}

func (z *gzipReader) Read(p []byte) (int, error) {
	for {
		if !z.inMember {
			if err := z.next(); err != nil {
				return 0, err
			}
		}
		n, err := z.member.Read(p)
		if err == io.EOF {
			z.inMember, err = false, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next begins the next member. It returns io.EOF if there is none.
func (z *gzipReader) next() error {
	head, err := z.src.Peek(1)
	if err != nil {
		return err
	}
	if z.continued && head[0] == 0 {
		return z.zeros()
	}
	head, err = z.src.Peek(4)
	if z.continued && head[0] != 0x1f || len(head) > 1 && head[1] != 0x8b {
		return ErrTrailing
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if head[3]&0xE0 != 0 {
		return errors.New("reserved header flags are set")
	}
	if z.member == nil {
		z.member, err = gzip.NewReader(z.src)
	} else {
		err = z.member.Reset(z.src)
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	z.member.Multistream(false)
	z.inMember, z.continued = true, true
	return nil
}

// zeros accepts zeros up to the end of the file.
func (z *gzipReader) zeros() error {
	for {
		b, err := z.src.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			return ErrTrailing
		}
	}
}
