package jsonl

import (
	"encoding/binary"
	"encoding/hex"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the tokens of a line. If the line is broken, its methods set fault and return false.
type scanner struct {
	data    []byte
	pos     int
	scratch []byte // decoded strings and compacted values of the line
	fault   struct {
		why  string
		pos  int
		utf8 bool
	}
}

func (s *scanner) reset(data []byte) {
	s.data, s.pos, s.scratch = data, 0, s.scratch[:0]
}

func (s *scanner) fail(pos int, why string) bool {
	s.fault.why, s.fault.pos, s.fault.utf8 = why, pos, false
	return false
}

func (s *scanner) failUTF8(pos int, why string) bool {
	s.fault.why, s.fault.pos, s.fault.utf8 = why, pos, true
	return false
}

// space skips white space, including the line feeds in a record that spans lines.
func (s *scanner) space() {
	for s.pos < len(s.data) {
		if c := s.data[s.pos]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return
		}
		s.pos++
	}
}

func (s *scanner) token() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// plain returns the number of bytes from pos up to a quote, a backslash, a control character or a non-ASCII byte.
func (s *scanner) plain(pos int) int {
	start := pos
	data := s.data
	for pos+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[pos:])
		quote, escape := w^(lowBits*'"'), w^(lowBits*'\\')
		// Each term has the high bit set for control characters, quotes and backslashes, respectively, and w for non-ASCII.
		// Borrows may wrongly mark bytes, but only after the first marked one, and the loop below checks every byte.
		if ((w-lowBits*0x20)|(quote-lowBits)|(escape-lowBits)|w)&highBits != 0 {
			break
		}
		pos += 8
	}
	for pos < len(data) {
		if c := data[pos]; c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			break
		}
		pos++
	}
	return pos - start
}

// text reads the string at pos. The result points into the line or, if the string has escapes, into scratch.
func (s *scanner) text() (out []byte, ok bool) {
	start := s.pos + 1
	end, escaped, ok := s.skipText()
	if !ok {
		return nil, false
	}
	if !escaped {
		return s.data[start:end], true
	}
	at := len(s.scratch)
	for pos := start; pos < end; {
		n := pos
		for n < end && s.data[n] != '\\' {
			n++
		}
		s.scratch = append(s.scratch, s.data[pos:n]...)
		if pos = n; pos < end {
			var r rune
			r, pos = s.escape(pos)
			s.scratch = utf8.AppendRune(s.scratch, r)
		}
	}
	return s.scratch[at:len(s.scratch):len(s.scratch)], true
}

// skipText checks and skips the string at pos. end is the position of its closing quote.
func (s *scanner) skipText() (end int, escaped, ok bool) {
	start := s.pos + 1
	ascii := true
	for pos := start; ; {
		pos += s.plain(pos)
		if pos >= len(s.data) {
			return 0, false, s.fail(pos, "want the end of a string")
		}
		switch c := s.data[pos]; {
		case c == '"':
			if !ascii && !utf8.Valid(s.data[start:pos]) {
				return 0, false, s.failUTF8(start+invalid(s.data[start:pos]), "invalid UTF-8")
			}
			s.pos = pos + 1
			return pos, escaped, true
		case c == '\\':
			escaped = true
			var r rune
			at := pos
			r, pos = s.escape(pos)
			if r == badEscape {
				return 0, false, s.fail(pos, "want an escape sequence")
			}
			if r == loneSurrogate {
				return 0, false, s.failUTF8(at, "half of a surrogate pair")
			}
		case c < 0x20:
			return 0, false, s.fail(pos, "want no control character in a string")
		default:
			ascii = false
			for pos < len(s.data) && s.data[pos] >= 0x80 {
				pos++
			}
		}
	}
}

const (
	badEscape     rune = -1
	loneSurrogate rune = -2
)

// escape decodes the escape sequence at pos and returns the position after it.
func (s *scanner) escape(pos int) (rune, int) {
	if pos+1 >= len(s.data) {
		return badEscape, len(s.data)
	}
	switch c := s.data[pos+1]; c {
	case '"', '\\', '/':
		return rune(c), pos + 2
	case 'b':
		return '\b', pos + 2
	case 'f':
		return '\f', pos + 2
	case 'n':
		return '\n', pos + 2
	case 'r':
		return '\r', pos + 2
	case 't':
		return '\t', pos + 2
	case 'u':
	default:
		return badEscape, pos + 1
	}
	high, ok := s.hex(pos)
	if !ok {
		return badEscape, pos
	}
	if !utf16.IsSurrogate(high) {
		return high, pos + 6
	}
	low, ok := s.hex(pos + 6)
	if r := utf16.DecodeRune(high, low); ok && r != utf8.RuneError {
		return r, pos + 12
	}
	return loneSurrogate, pos + 6
}

// hex decodes \uXXXX at pos.
func (s *scanner) hex(pos int) (r rune, ok bool) {
	if pos+6 > len(s.data) || s.data[pos] != '\\' || s.data[pos+1] != 'u' {
		return 0, false
	}
	var b [2]byte
	_, err := hex.Decode(b[:], s.data[pos+2:pos+6])
	return rune(b[0])<<8 | rune(b[1]), err == nil
}

func (s *scanner) number() bool {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	switch {
	case s.pos < len(s.data) && s.data[s.pos] == '0':
		s.pos++
	case !s.digits():
		return s.fail(s.pos, "want a digit")
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.fail(s.pos, "want a digit")
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.fail(s.pos, "want a digit")
		}
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > start
}

// word skips w, which is true, false or null.
func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos >= len(w) && string(s.data[s.pos:s.pos+len(w)]) == w {
		s.pos += len(w)
		return true
	}
	return s.fail(s.pos, "want a value")
}

// invalid returns the position of the first byte of b that is not UTF-8.
func invalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}
