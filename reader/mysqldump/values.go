package mysqldump

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
)

// form is the notation of a value in a dump.
type form uint8

const (
	null   form = iota
	number      // a number, as written
	quoted      // a text in quotes, unescaped
	packed      // bytes, as hexadecimal digits, as bits or as a text after _binary
)

type value struct {
	form form
	text []byte
}

type values struct {
	text []byte
	pos  int
}

var errValue = errors.New("want NULL, a number, a string or bytes")

// next parses a value and moves to the comma after it, or to the end. New bytes are appended to scratch.
func (v *values) next(scratch *[]byte) (one value, err error) {
	v.space()
	rest := v.text[v.pos:]
	switch {
	case len(rest) == 0:
		return one, errValue
	case begins(rest, "NULL"):
		v.pos += len("NULL")
	case begins(rest, "_binary "):
		v.pos += len("_binary ")
		if v.space(); v.pos == len(v.text) {
			return one, errValue
		}
		if one, err = v.plain(scratch); one.form == quoted {
			one.form = packed
		}
	default:
		one, err = v.plain(scratch)
	}
	if err != nil {
		return one, err
	}
	if v.space(); v.pos < len(v.text) && v.text[v.pos] != ',' {
		return one, errors.New("want ',' or the end of the row")
	}
	return one, nil
}

func (v *values) space() {
	for v.pos < len(v.text) && isSpace(v.text[v.pos]) {
		v.pos++
	}
}

func (v *values) plain(scratch *[]byte) (one value, err error) {
	rest := v.text[v.pos:]
	switch {
	case rest[0] == '\'':
		one.form = quoted
		one.text, err = v.string(scratch)
		return one, err
	case begins(rest, "0x"):
		v.pos += 2
		end := v.pos
		for end < len(v.text) && isHex(v.text[end]) {
			end++
		}
		one.form = packed
		one.text, err = unhex(scratch, v.text[v.pos:end])
		v.pos = end
		return one, err
	case begins(rest, "x'") || begins(rest, "b'"):
		v.pos += 2
		end := bytes.IndexByte(v.text[v.pos:], '\'')
		if end < 0 {
			return one, errValue
		}
		digits := v.text[v.pos : v.pos+end]
		v.pos += end + 1
		one.form = packed
		if rest[0]|0x20 == 'x' {
			one.text, err = unhex(scratch, digits)
		} else {
			one.text, err = unbits(scratch, digits)
		}
		return one, err
	}
	n := numberEnd(rest)
	if n == 0 {
		return one, errValue
	}
	v.pos += n
	return value{number, rest[:n:n]}, nil
}

// string parses the text at pos, with its escapes.
func (v *values) string(scratch *[]byte) ([]byte, error) {
	v.pos++
	from := len(*scratch)
	for {
		rest := v.text[v.pos:]
		n := textEnd(rest, '\'')
		if n < 0 || rest[n] == '\\' && n+1 == len(rest) {
			return nil, errors.New("unterminated string")
		}
		*scratch = append(*scratch, rest[:n]...)
		switch {
		case rest[n] == '\\':
			*scratch = appendEscaped(*scratch, rest[n+1])
			v.pos += n + 2
		case n+1 < len(rest) && rest[n+1] == '\'':
			*scratch = append(*scratch, '\'')
			v.pos += n + 2
		default:
			v.pos += n + 1
			return (*scratch)[from:len(*scratch):len(*scratch)], nil
		}
	}
}

// appendEscaped appends the meaning of a byte after a backslash.
func appendEscaped(dst []byte, b byte) []byte {
	if b == '%' || b == '_' {
		return append(dst, '\\', b)
	}
	if i := strings.IndexByte("0bnrtZ", b); i >= 0 {
		b = "\x00\b\n\r\t\x1a"[i]
	}
	return append(dst, b)
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

func unhex(scratch *[]byte, digits []byte) ([]byte, error) {
	from := len(*scratch)
	out, err := hex.AppendDecode(*scratch, digits)
	if err != nil {
		return nil, errors.New("want hexadecimal digits, two for each byte")
	}
	*scratch = out
	return out[from:len(out):len(out)], nil
}

// unbits converts binary digits to bytes. If they do not fill whole bytes, the first byte is the incomplete one.
func unbits(scratch *[]byte, digits []byte) ([]byte, error) {
	from := len(*scratch)
	for len(digits) > 0 {
		n := (len(digits)-1)%8 + 1
		b, err := strconv.ParseUint(string(digits[:n]), 2, 8)
		if err != nil {
			return nil, errors.New("want binary digits")
		}
		*scratch, digits = append(*scratch, byte(b)), digits[n:]
	}
	return (*scratch)[from:len(*scratch):len(*scratch)], nil
}

// numberEnd returns the end of the number at the start of text, or 0 if there is no number.
func numberEnd(text []byte) int {
	digits := func(i int) int {
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i
	}
	i := 0
	if text[0] == '-' {
		i = 1
	}
	whole := digits(i)
	end, some := whole, whole > i
	if end < len(text) && text[end] == '.' {
		end = digits(whole + 1)
		some = some || end > whole+1
	}
	if !some {
		return 0
	}
	if end < len(text) && text[end]|0x20 == 'e' {
		from := end + 1
		if from < len(text) && (text[from] == '+' || text[from] == '-') {
			from++
		}
		if to := digits(from); to > from {
			end = to
		}
	}
	return end
}

func datum(c *sqldump.Column, v value, scratch *[]byte) (d record.Datum, err error) {
	if v.form == null {
		return d, nil
	}
	d.Kind, d.Bytes = c.Kind, v.text
	want := func(forms string, f ...form) error {
		if slices.Contains(f, v.form) {
			return nil
		}
		return fmt.Errorf("want %s", forms)
	}
	switch c.Form {
	case asInteger:
		if err = want("an integer", number); err == nil {
			d.Int, err = sqldump.Integer(string(v.text))
		}
	case asUnsigned:
		if err = want("an integer", number); err == nil {
			var n uint64
			n, err = sqldump.Unsigned(string(v.text))
			d.Int = int64(n)
		}
	case asFloat, asDouble:
		if err = want("a number", number); err == nil {
			d.Double, err = sqldump.Double(v.text, c.Form == asFloat)
		}
	case asBit, asBits:
		if err = want("bits", packed, quoted); err == nil {
			d.Int, err = bits(v.text, c.Form == asBit)
		}
	case asBytes:
		err = want("bytes", packed, quoted)
	case asTime, asUTC:
		if err = want("a time", quoted); err == nil {
			d.Bytes = rfc3339(scratch, v.text, c.Form == asUTC)
		}
	default:
		switch {
		case c.Kind == record.Text && v.form == packed: // the dump does not state the type
			d.Kind = record.Binary
		case c.Kind == record.Text && v.form == quoted:
			d.Kind = record.String
		case c.Kind == record.Text:
		case v.form == packed:
			err = errors.New("want a string or a number")
		}
	}
	return d, err
}

func bits(text []byte, one bool) (n int64, err error) {
	text = bytes.TrimLeft(text, "\x00")
	if len(text) > 8 || one && (len(text) > 1 || len(text) == 1 && text[0] > 1) {
		return 0, errors.New("it has more bits than the column")
	}
	for _, b := range text {
		n = n<<8 | int64(b)
	}
	return n, nil
}

// rfc3339 formats a time as record.AppendDatetime does. A valid time in UTC gets a Z.
func rfc3339(scratch *[]byte, text []byte, utc bool) []byte {
	from := len(*scratch)
	*scratch = record.AppendDatetime(*scratch, text)
	if utc && len(text) > 10 && (*scratch)[from+10] == 'T' {
		*scratch = append(*scratch, 'Z')
	}
	return (*scratch)[from:len(*scratch):len(*scratch)]
}
