package jsontext

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"

	"example.com/tsimport/reader/record"
)

// Quoted appends text, which may have invalid UTF-8, as a JSON string.
func Quoted(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i, b := range text {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
	}
	return append(append(dst, text[start:]...), '"')
}

// Float appends a number with the fewest digits that round-trip. NaN and infinities become strings: JSON lacks them.
func Float(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}

// Append appends a typed value that is not a string, without loss: all digits, times as in RFC 3339, bytes in base64.
func Append(dst []byte, d *record.Datum) []byte {
	switch d.Kind {
	case record.Integer:
		return strconv.AppendInt(dst, d.Int, 10)
	case record.Unsigned:
		return strconv.AppendUint(dst, uint64(d.Int), 10)
	case record.Boolean:
		return strconv.AppendBool(dst, d.Int != 0)
	case record.Double:
		return Float(dst, d.Double, 64)
	case record.Decimal:
		return d.AppendDecimal(dst)
	case record.Date:
		return time.Unix(d.Int*86400, 0).UTC().AppendFormat(dst, `"2006-01-02"`)
	case record.TimeOfDay:
		return d.Moment().AppendFormat(dst, `"15:04:05.999999999"`)
	case record.Timestamp:
		if d.Local {
			return d.Moment().AppendFormat(dst, `"2006-01-02T15:04:05.999999999"`)
		}
		return d.Moment().AppendFormat(dst, `"2006-01-02T15:04:05.999999999Z07:00"`)
	case record.Binary:
		dst = append(dst, '"')
		return append(base64.StdEncoding.AppendEncode(dst, d.Bytes), '"')
	}
	return append(dst, "null"...)
}

// Half decodes a 16-bit floating-point number.
func Half(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	var f float64
	switch exponent {
	case 0:
		f = math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		f = math.Inf(1)
	default:
		f = math.Ldexp(1024+fraction, exponent-25)
	}
	if h>>15 == 1 {
		f = -f
	}
	return f
}
