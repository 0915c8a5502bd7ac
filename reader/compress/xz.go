package compress

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"slices"
)

// xzReader reads .xz files. It checks index, footer, sizes, padding and checksums, which the library does not.
type xzReader struct {
	src     *source
	streams int
	check   byte
	block   *xzBlock
	open    bool // whether a stream has begun and not ended
	seen    xzRecords
}

// xzRecords counts a stream's blocks and hashes their sizes, for comparison with the index in constant memory.
type xzRecords struct {
	count  uint64
	digest hash.Hash
}

func (s *xzRecords) add(unpadded, size uint64) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], unpadded)
	binary.LittleEndian.PutUint64(b[8:], size)
	s.digest.Write(b[:])
	s.count++
}

var (
	xzMagic   = []byte("\xfd7zXZ\x00")
	crc64ECMA = crc64.MakeTable(crc64.ECMA)
)

func (z *xzReader) Read(p []byte) (int, error) {
	for {
		if z.block == nil {
			if err := z.advance(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := z.block.Read(p)
		if err == io.EOF {
			z.seen.add(z.block.unpadded, z.block.size)
			z.block, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// advance moves to the next block, which may be in the next stream.
func (z *xzReader) advance() error {
	if !z.open {
		return z.header()
	}
	size, err := z.src.ReadByte()
	if err != nil {
		return noEOF(err)
	}
	if size == 0 {
		return z.index()
	}
	z.block, err = newXzBlock(z.src, size, z.check)
	return err
}

// header reads a stream's header, and before it the padding after an earlier stream.
func (z *xzReader) header() error {
	if z.streams > 0 {
		if end, err := z.padding(); err != nil {
			return err
		} else if end {
			return io.EOF
		}
	}
	var b [12]byte
	n, err := io.ReadFull(z.src, b[:])
	if !bytes.HasPrefix(b[:], xzMagic[:min(n, 6)]) {
		if z.streams > 0 {
			return ErrTrailing
		}
		return errors.New("no xz header")
	}
	if err != nil {
		return noEOF(err)
	}
	if binary.LittleEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[6:8]) {
		return errors.New("the checksum of the stream header is wrong")
	}
	if b[6] != 0 || b[7] > 15 {
		return errors.New("unknown stream flags")
	}
	z.check = b[7]
	if _, err := newXzCheck(z.check); err != nil {
		return err
	}
	z.open = true
	z.seen = xzRecords{digest: sha256.New()}
	return nil
}

// padding reads the zeros between streams, whose number must be a multiple of four.
func (z *xzReader) padding() (end bool, err error) {
	for {
		four, err := z.src.Peek(4)
		if len(four) == 0 && err == io.EOF {
			return true, nil
		}
		if err != nil && err != io.EOF {
			return false, err
		}
		if len(four) == 4 && binary.LittleEndian.Uint32(four) != 0 {
			return false, nil
		}
		if len(four) < 4 {
			if four[0] != 0 {
				return false, nil
			}
			return false, ErrTrailing
		}
		if _, err := z.src.Discard(4); err != nil {
			return false, err
		}
	}
}

// index reads the rest of a stream's index, after the first byte, and the stream's footer.
func (z *xzReader) index() error {
	in := &summed{r: z.src, n: 1, crc: crc32.ChecksumIEEE([]byte{0})}
	count, err := readVLI(in)
	if err != nil {
		return err
	}
	if count != z.seen.count {
		return fmt.Errorf("the index lists %d blocks, but there are %d", count, z.seen.count)
	}
	listed := xzRecords{digest: sha256.New()}
	for range count {
		unpadded, err := readVLI(in)
		if err != nil {
			return err
		}
		size, err := readVLI(in)
		if err != nil {
			return err
		}
		listed.add(unpadded, size)
	}
	if !bytes.Equal(listed.digest.Sum(nil), z.seen.digest.Sum(nil)) {
		return errors.New("the block sizes in the index are wrong")
	}
	for in.n%4 != 0 {
		if b, err := in.ReadByte(); err != nil {
			return err
		} else if b != 0 {
			return errors.New("padding of the index is not zero")
		}
	}
	var b [16]byte // first the checksum of the index, then the footer
	if _, err := io.ReadFull(z.src, b[:]); err != nil {
		return noEOF(err)
	}
	switch {
	case binary.LittleEndian.Uint32(b[:]) != in.crc:
		return errors.New("the checksum of the index is wrong")
	case string(b[14:]) != "YZ":
		return errors.New("no stream footer")
	case binary.LittleEndian.Uint32(b[4:]) != crc32.ChecksumIEEE(b[8:14]):
		return errors.New("the checksum of the stream footer is wrong")
	case (int64(binary.LittleEndian.Uint32(b[8:]))+1)*4 != in.n+4:
		return errors.New("the index size in the stream footer is wrong")
	case b[12] != 0 || b[13] != z.check:
		return errors.New("stream header and footer differ")
	}
	z.open = false
	z.streams++
	return nil
}

type summed struct {
	r   io.ByteReader
	n   int64
	crc uint32
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err != nil {
		return 0, noEOF(err)
	}
	s.n++
	s.crc = crc32.Update(s.crc, crc32.IEEETable, []byte{b})
	return b, nil
}

// readVLI reads a number of up to 63 bits. It refuses encodings that are longer than necessary.
func readVLI(r io.ByteReader) (uint64, error) {
	var v uint64
	for i := range 9 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, noEOF(err)
		}
		v |= uint64(b&0x7F) << (7 * i)
		if b < 0x80 {
			if b == 0 && i > 0 {
				break
			}
			return v, nil
		}
	}
	return 0, errors.New("bad number in a header")
}

// newXzCheck returns the hash for a stream's check, or nil if the stream has none.
func newXzCheck(id byte) (hash.Hash, error) {
	switch id {
	case 0:
		return nil, nil
	case 1:
		return &littleEndian{crc32.NewIEEE()}, nil
	case 4:
		return &littleEndian{crc64.New(crc64ECMA)}, nil
	case 10:
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("check type %d is not supported", id)
}

// littleEndian reverses the bytes of a CRC: xz stores the low byte first.
type littleEndian struct{ hash.Hash }

func (h *littleEndian) Sum(b []byte) []byte {
	n := len(b)
	b = h.Hash.Sum(b)
	slices.Reverse(b[n:])
	return b
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
