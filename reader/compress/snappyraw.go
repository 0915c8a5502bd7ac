package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// snappyWindow is the largest offset of a copy in an unframed block, in bytes. The format allows 4 GiB.
const snappyWindow = 4 << 20

// snappyRawReader reads a file that is a single snappy block, as Alibaba Cloud's log service ships them.
// https://github.com/google/snappy/blob/main/format_description.txt
type snappyRawReader struct {
	src    *source
	window int
	left   uint64 // output bytes still to come, by the block's stated length
	begun  bool
	out    []byte // the window and the bytes to return next
	given  int    // number of bytes of out already returned
	text   int    // bytes of the current literal still to be read
}

func (r *snappyRawReader) Read(p []byte) (int, error) {
	if !r.begun {
		total, err := binary.ReadUvarint(r.src)
		if err != nil {
			return 0, noEOF(err)
		}
		if total >= 1<<32 {
			return 0, errors.New("the block's stated length is more than the format allows")
		}
		r.left, r.begun = total, true
	}
	for r.given == len(r.out) {
		if r.left == 0 && r.text == 0 {
			return 0, r.end()
		}
		if len(r.out) > r.window+bufferBytes {
			r.out = r.out[:copy(r.out, r.out[len(r.out)-r.window:])]
			r.given = len(r.out)
		}
		if err := r.element(); err != nil {
			return 0, noEOF(err)
		}
	}
	n := copy(p, r.out[r.given:])
	r.given += n
	return n, nil
}

func (r *snappyRawReader) end() error {
	if end, err := r.src.atEnd(); err != nil {
		return err
	} else if !end {
		return ErrTrailing
	}
	return io.EOF
}

// element decodes the next copy, the next literal, or a part of a literal.
func (r *snappyRawReader) element() error {
	if r.text > 0 {
		return r.literal()
	}
	tag, err := r.src.ReadByte()
	if err != nil {
		return err
	}
	var length, offset uint64
	switch tag & 3 {
	case 0:
		length = uint64(tag >> 2)
		if length >= 60 {
			if length, err = r.little(int(length) - 59); err != nil {
				return err
			}
		}
		if err := r.take(length + 1); err != nil {
			return err
		}
		r.text = int(length + 1)
		return r.literal()
	case 1:
		low, err := r.little(1)
		if err != nil {
			return err
		}
		length, offset = uint64(tag>>2&7)+4, uint64(tag>>5)<<8|low
	default:
		length = uint64(tag>>2) + 1
		if offset, err = r.little(int(tag&3-1) * 2); err != nil {
			return err
		}
	}
	if err := r.take(length); err != nil {
		return err
	}
	switch {
	case offset == 0 || offset > uint64(len(r.out)) && len(r.out) < r.window:
		return errors.New("a copy reaches back before the beginning")
	case offset > uint64(len(r.out)):
		return fmt.Errorf("a copy reaches back %d bytes, more than the %d that are kept", offset, r.window)
	}
	for range length { // a copy may overlap its own output
		r.out = append(r.out, r.out[len(r.out)-int(offset)])
	}
	return nil
}

func (r *snappyRawReader) take(length uint64) error {
	if length > r.left {
		return errors.New("the block holds more than its stated length")
	}
	r.left -= length
	return nil
}

func (r *snappyRawReader) literal() error {
	n := min(r.text, bufferBytes)
	at := len(r.out)
	r.out = append(r.out, make([]byte, n)...)
	got, err := io.ReadFull(r.src, r.out[at:])
	r.out = r.out[:at+got]
	r.text -= got
	return err
}

func (r *snappyRawReader) little(n int) (v uint64, err error) {
	for i := range n {
		b, err := r.src.ReadByte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b) << (8 * i)
	}
	return v, nil
}
