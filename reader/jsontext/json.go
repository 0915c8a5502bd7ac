package jsontext

import (
	"encoding/base64"
	"math"
	"math/big"
	"strconv"
	"time"

	"example.com/tsimport/reader/record"
)

// Quoted writes text as a JSON string. The text need not be UTF-8.
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

// Float writes a number with the fewest digits that give it back. NaN and infinity, which JSON does not have, become texts: nested values
// use them for what is empty, as the points of GeoArrow do.
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

// Append writes any datum but a string, exactly: integers and decimals with all their digits, times as RFC 3339
// says, without a zone when the file names none, bytes as base64.
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
		return Decimal(dst, d.Bytes, d.Scale)
	case record.Date:
		return time.Unix(d.Int*86400, 0).UTC().AppendFormat(dst, `"2006-01-02"`)
	case record.TimeOfDay:
		return Moment(d).AppendFormat(dst, `"15:04:05.999999999"`)
	case record.Timestamp:
		if d.Local {
			return Moment(d).AppendFormat(dst, `"2006-01-02T15:04:05.999999999"`)
		}
		return Moment(d).AppendFormat(dst, `"2006-01-02T15:04:05.999999999Z07:00"`)
	case record.Binary:
		dst = append(dst, '"')
		return append(base64.StdEncoding.AppendEncode(dst, d.Bytes), '"')
	}
	return append(dst, "null"...)
}

// Moment is a time of day or a timestamp as a time in UTC.
func Moment(d *record.Datum) time.Time {
	unit := int64(d.Unit)
	return time.Unix(d.Int/unit, d.Int%unit*(1e9/unit)).UTC()
}

// Decimal writes unscaled * 10^-scale in plain digits.
func Decimal(dst, unscaled []byte, scale int32) []byte {
	v := new(big.Int).SetBytes(unscaled)
	if len(unscaled) > 0 && unscaled[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(unscaled))))
	}
	digits := v.Append(nil, 10)
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if scale <= 0 {
		dst = append(dst, digits...)
		for ; scale < 0 && v.Sign() != 0; scale++ {
			dst = append(dst, '0')
		}
		return dst
	}
	for len(digits) <= int(scale) {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - int(scale)
	return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
}

// Half is a floating-point number of 16 bits.
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
