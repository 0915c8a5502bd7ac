package charset

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Decode appends src, a field or record, to dst as UTF-8. It stops at undecodable bytes; bad is their offset, or -1. It
// never makes a U+FFFD that src does not have. "utf-16" decodes nothing: only NewReader determines the byte order.
func (e Encoding) Decode(dst, src []byte) (out []byte, bad int) {
	if e.form == utf8Form {
		n := len(src)
		if !utf8.Valid(src) {
			n = validPrefix(src)
		}
		dst = append(dst, src[:n]...)
		if n < len(src) {
			return dst, n
		}
		return dst, -1
	}
	for i := 0; i < len(src); {
		if n := e.asciiRun(src[i:]); n > 0 {
			dst = append(dst, src[i:i+n]...)
			i += n
			continue
		}
		var n int
		if dst, n = e.one(dst, src[i:]); n == 0 {
			return dst, i
		}
		i += n
	}
	return dst, -1
}

// one appends the character at the start of src and returns its size in bytes, or 0 if it is invalid.
func (e Encoding) one(dst, src []byte) (_ []byte, n int) {
	if e.form != legacy {
		r, n := e.utf16(src)
		if n > 0 {
			dst = utf8.AppendRune(dst, r)
		}
		return dst, n
	}
	r, n := e.table.next(src)
	switch {
	case n == 0:
	case r == twice:
		dst = append(dst, e.table.wide[uint16(src[0])<<8|uint16(src[1])]...)
	default:
		dst = utf8.AppendRune(dst, r)
	}
	return dst, n
}

func (e Encoding) utf16(src []byte) (r rune, n int) {
	unit := func(at int) rune {
		if at+2 > len(src) || e.form == utf16Any {
			return -1
		}
		if e.form == utf16LE {
			return rune(binary.LittleEndian.Uint16(src[at:]))
		}
		return rune(binary.BigEndian.Uint16(src[at:]))
	}
	r = unit(0)
	if r < 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 2
	}
	if pair := utf16.DecodeRune(r, unit(2)); pair != utf8.RuneError {
		return pair, 4
	}
	return 0, 0
}

// asciiRun returns the length of the ASCII prefix of src, or 0 if the encoding is not ASCII-compatible.
func (e Encoding) asciiRun(src []byte) int {
	if e.form != legacy || !e.table.ascii {
		return 0
	}
	n := 0
	for n+8 <= len(src) && binary.LittleEndian.Uint64(src[n:])&0x8080808080808080 == 0 {
		n += 8
	}
	for n < len(src) && src[n] < 0x80 {
		n++
	}
	return n
}

func validPrefix(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// Undecodable replaces undecodable bytes in NewReader's output. It is not UTF-8, so values with it are refused.
const Undecodable = 0xFF

var errNoBOM = errors.New("decode utf-16: no byte order mark; give --encoding utf-16le or utf-16be")

const readerBytes = 64 << 10

// NewReader transcodes a stream that cannot be split. It drops a BOM, which "utf-16" requires. UTF-8 passes unchanged.
func (e Encoding) NewReader(r io.Reader) io.Reader {
	if e.IsUTF8() {
		return r
	}
	return &reader{e: e, r: r, in: make([]byte, 0, readerBytes), first: true}
}

type reader struct {
	e     Encoding
	r     io.Reader
	in    []byte // bytes not decoded yet
	out   []byte // decoded bytes
	given int    // number of bytes of out already returned
	first bool
	err   error // error of r
}

func (t *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for t.given == len(t.out) {
		if t.err != nil && len(t.in) == 0 {
			return 0, t.err
		}
		if t.err == nil {
			n, err := t.r.Read(t.in[len(t.in):cap(t.in)])
			t.in, t.err = t.in[:len(t.in)+n], err
		}
		if t.first && !t.begin() {
			continue
		}
		t.decode()
	}
	n := copy(p, t.out[t.given:])
	t.given += n
	return n, nil
}

// begin examines the first four bytes. It returns false if it needs more bytes or refuses the stream.
func (t *reader) begin() bool {
	if len(t.in) < 4 && t.err == nil {
		return false
	}
	t.first = false
	found, n, ok := DetectBOM(t.in)
	if IsUTF32(t.in) && t.e.form != legacy {
		t.in, t.err = nil, errors.New("decode "+t.e.Name()+": the byte order mark is that of utf-32, which is not supported")
		return false
	}
	if t.e.form == utf16Any {
		if !ok || found.form != utf16LE && found.form != utf16BE {
			if len(t.in) > 0 {
				t.in, t.err = nil, errNoBOM
			}
			return false
		}
		t.e = found
	}
	if ok && found == t.e {
		t.in = t.in[:copy(t.in, t.in[n:])]
	}
	return true
}

// decode decodes t.in into t.out. An incomplete character at the end stays in t.in.
func (t *reader) decode() {
	t.out, t.given = t.out[:0], 0
	rest := t.in
	for len(rest) > 0 {
		var bad int
		if t.out, bad = t.e.Decode(t.out, rest); bad < 0 {
			rest = nil
			break
		}
		rest = rest[bad:]
		if len(rest) < 4 && t.err == nil {
			break
		}
		width := 1
		if t.e.form != legacy {
			width = min(2, len(rest))
		}
		for range width {
			t.out = append(t.out, Undecodable)
		}
		rest = rest[width:]
	}
	t.in = t.in[:copy(t.in[:cap(t.in)], rest)]
}
