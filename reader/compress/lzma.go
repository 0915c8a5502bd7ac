package compress

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// lzmaReader reads a .lzma file: one stream, no check sum.
type lzmaReader struct {
	src    *source
	stream io.Reader
}

func (z *lzmaReader) Read(p []byte) (int, error) {
	if z.stream == nil {
		head, err := z.src.Peek(13)
		if err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
		if !lzmaDictSize(binary.LittleEndian.Uint32(head[1:])) {
			return 0, errors.New("bad dictionary size")
		}
		if z.stream, err = newLzma(z.src, head, z.src.window); err != nil {
			return 0, err
		}
	}
	n, err := z.stream.Read(p)
	if err == io.EOF {
		if end, lookErr := z.src.atEnd(); lookErr != nil {
			err = lookErr
		} else if !end {
			err = ErrTrailing
		}
	}
	return n, err
}

// newLzma begins a stream whose 13 bytes of header are head. The dictionary is as large as the header says, but never
// larger than the data, so a limit on it bounds the memory.
func newLzma(r io.Reader, head []byte, window int) (io.Reader, error) {
	dict, size := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint64(head[5:])
	if uint64(dict) > uint64(window) && size > uint64(window) {
		return nil, &windowError{window}
	}
	z, err := lzma.NewReader(r)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return z, err
}

// lzipReader reads members of LZMA data with check sum and sizes.
type lzipReader struct {
	src     *source
	stream  io.Reader
	members int
	version byte
	start   int64 // of the member in the file
	size    uint64
	crc     uint32
}

func (z *lzipReader) Read(p []byte) (int, error) {
	for {
		if z.stream == nil {
			if err := z.next(); err != nil {
				return 0, err
			}
		}
		n, err := z.stream.Read(p)
		z.crc = crc32.Update(z.crc, crc32.IEEETable, p[:n])
		z.size += uint64(n)
		if err == io.EOF {
			err = z.finish()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next begins a member. Anything else behind a member is refused although the format allows it: it might be a member
// with a damaged header, and its rows would be missing without a word.
func (z *lzipReader) next() error {
	z.start = z.src.offset()
	var head [6]byte
	n, err := io.ReadFull(z.src, head[:])
	if err == io.EOF && z.members > 0 {
		return io.EOF
	}
	if string(head[:min(n, 4)]) != "LZIP"[:min(n, 4)] {
		if z.members > 0 {
			return ErrTrailing
		}
		return errors.New("no lzip header")
	}
	if err != nil {
		return noEOF(err)
	}
	z.version = head[4]
	bits := head[5] & 0x1F
	if z.version > 1 || bits < 12 || bits > 29 {
		return errors.New("bad header")
	}
	dict := uint32(1) << bits
	dict -= dict / 16 * uint32(head[5]>>5)
	if dict < 4096 {
		return errors.New("bad header")
	}
	lzmaHead := make([]byte, 13)
	lzmaHead[0] = 0x5D
	binary.LittleEndian.PutUint32(lzmaHead[1:], dict)
	binary.LittleEndian.PutUint64(lzmaHead[5:], 1<<64-1)
	z.stream, err = newLzma(&prefixed{head: lzmaHead, source: z.src}, lzmaHead, z.src.window)
	z.size, z.crc = 0, 0
	return err
}

// finish checks the trailer of a member.
func (z *lzipReader) finish() error {
	z.stream = nil
	z.members++
	var b [20]byte
	trailer := b[:12+8*int(z.version)]
	if _, err := io.ReadFull(z.src, trailer); err != nil {
		return noEOF(err)
	}
	switch {
	case binary.LittleEndian.Uint32(trailer) != z.crc:
		return errors.New("check sum of the data differs")
	case binary.LittleEndian.Uint64(trailer[4:]) != z.size:
		return errors.New("size of the data differs")
	case z.version > 0 && binary.LittleEndian.Uint64(trailer[12:]) != uint64(z.src.offset()-z.start):
		return errors.New("size of the member differs")
	}
	return nil
}

// prefixed gives head before the source.
type prefixed struct {
	head []byte
	*source
}

func (r *prefixed) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	return r.source.Read(p)
}

func (r *prefixed) ReadByte() (byte, error) {
	if len(r.head) > 0 {
		b := r.head[0]
		r.head = r.head[1:]
		return b, nil
	}
	return r.source.ReadByte()
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
