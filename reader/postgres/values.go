package postgres

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// readers parse the text of key types whose kind is not enough.
var readers = map[string]func(d *record.Datum, text []byte, scratch *[]byte) error{
	"bytea": readBytes, "timestamp": readTime, "timestamptz": readTime,
}

func readBytes(d *record.Datum, text []byte, scratch *[]byte) (err error) {
	digits, ok := bytes.CutPrefix(text, []byte(`\x`))
	if !ok {
		return fmt.Errorf("a value of bytea begins with %.10q, not with \\x", text)
	}
	from := len(*scratch)
	*scratch, err = hex.AppendDecode(*scratch, digits)
	d.Bytes = (*scratch)[from:len(*scratch):len(*scratch)]
	return err
}

// readTime formats a time as RFC 3339. It leaves infinity and years before 1 unchanged.
func readTime(d *record.Datum, text []byte, scratch *[]byte) error {
	from := len(*scratch)
	*scratch = record.AppendTimestamp(*scratch, text)
	if rest, ok := bytes.CutSuffix(*scratch, []byte("+00")); ok {
		*scratch = append(rest, 'Z')
	}
	d.Bytes = (*scratch)[from:len(*scratch):len(*scratch)]
	return nil
}

// binaries decode the server's binary format, which is cheaper than text. Keys are read as text: bounds are text.
var binaries = map[string]func(d *record.Datum, value []byte, scratch *[]byte) error{
	"int2": binaryInteger, "int4": binaryInteger, "int8": binaryInteger, "oid": binaryOID, "float4": binaryDouble,
	"float8": binaryDouble, "bool": binaryBool, "bytea": binaryBytes, "timestamp": binaryTime, "timestamptz": binaryUTC,
}

func sizeError(value []byte) error {
	return fmt.Errorf("a value has %d bytes, which is not a valid size for its type", len(value))
}

func binaryInteger(d *record.Datum, value []byte, _ *[]byte) error {
	switch len(value) {
	case 2:
		d.Int = int64(int16(binary.BigEndian.Uint16(value)))
	case 4:
		d.Int = int64(int32(binary.BigEndian.Uint32(value)))
	case 8:
		d.Int = int64(binary.BigEndian.Uint64(value))
	default:
		return sizeError(value)
	}
	return nil
}

func binaryOID(d *record.Datum, value []byte, _ *[]byte) error {
	if len(value) != 4 {
		return sizeError(value)
	}
	d.Int = int64(binary.BigEndian.Uint32(value))
	return nil
}

func binaryDouble(d *record.Datum, value []byte, _ *[]byte) error {
	switch len(value) {
	case 4:
		d.Double = float64(math.Float32frombits(binary.BigEndian.Uint32(value)))
	case 8:
		d.Double = math.Float64frombits(binary.BigEndian.Uint64(value))
	default:
		return sizeError(value)
	}
	return nil
}

func binaryBool(d *record.Datum, value []byte, _ *[]byte) error {
	if len(value) != 1 || value[0] > 1 {
		return sizeError(value)
	}
	d.Int = int64(value[0])
	return nil
}

func binaryBytes(d *record.Datum, value []byte, _ *[]byte) error {
	d.Bytes = value
	return nil
}

func binaryTime(d *record.Datum, value []byte, scratch *[]byte) error {
	return appendTime(d, value, scratch, "", "")
}

func binaryUTC(d *record.Datum, value []byte, scratch *[]byte) error {
	return appendTime(d, value, scratch, "Z", "+00")
}

// appendTime formats a time in microseconds since 2000 as readTime formats the server's text. zone and serverZone are
// the suffixes in RFC 3339 and in the server's text.
func appendTime(d *record.Datum, value []byte, scratch *[]byte, zone, serverZone string) error {
	if len(value) != 8 {
		return sizeError(value)
	}
	micros := int64(binary.BigEndian.Uint64(value))
	from := len(*scratch)
	dst := *scratch
	switch micros {
	case math.MaxInt64:
		dst = append(dst, "infinity"...)
	case math.MinInt64:
		dst = append(dst, "-infinity"...)
	default:
		const day = 24 * 60 * 60 * 1_000_000
		days, of := micros/day, micros%day
		if of < 0 {
			days, of = days-1, of+day
		}
		year, month, date := civil(days)
		before := year < 1
		between, end := byte('T'), zone
		if before { // RFC 3339 has no years before 1
			year, between, end = 1-year, ' ', serverZone+" BC"
		}
		if year > 9999 {
			dst = strconv.AppendInt(dst, year, 10)
		} else {
			dst = appendTwo(appendTwo(dst, year/100), year%100)
		}
		dst = appendTwo(append(appendTwo(append(dst, '-'), month), '-'), date)
		seconds := of / 1_000_000
		dst = appendTwo(append(dst, between), seconds/3600)
		dst = appendTwo(append(dst, ':'), seconds/60%60)
		dst = appendTwo(append(dst, ':'), seconds%60)
		if fraction := of % 1_000_000; fraction > 0 {
			dst = append(dst, '.')
			dst = appendTwo(appendTwo(appendTwo(dst, fraction/10_000), fraction/100%100), fraction%100)
			dst = bytes.TrimRight(dst, "0")
		}
		dst = append(dst, end...)
	}
	*scratch = dst
	d.Bytes = dst[from:len(dst):len(dst)]
	return nil
}

func appendTwo(dst []byte, n int64) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// civil returns the date of a day counted from 2000-01-01, in the proleptic Gregorian calendar, as the server does.
func civil(days int64) (year, month, date int64) {
	days += 730_425 // days since 0000-03-01, so that a leap day is the last day of a year
	era := days / 146_097
	if days < 0 {
		era = (days - 146_096) / 146_097
	}
	of := days - era*146_097
	years := (of - of/1460 + of/36_524 - of/146_096) / 365
	ofYear := of - (365*years + years/4 - years/100)
	shifted := (5*ofYear + 2) / 153 // months since March
	date = ofYear - (153*shifted+2)/5 + 1
	month, year = shifted+3, years+era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, date
}

var (
	uuids    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	numerics = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
)

// MayHold reports whether a value of the key column c can have this text, as the server writes it.
func (a *Address) MayHold(c *sqltable.Column, text []byte) bool {
	bits := map[string]int{"int2": 16, "int4": 32, "int8": 64, "oid": 33}
	switch base := c.Of.(column).base; base {
	case "int2", "int4", "int8", "oid":
		n, err := strconv.ParseInt(string(text), 10, bits[base])
		return err == nil && (base != "oid" || n >= 0)
	case "uuid":
		return uuids.Match(text)
	case "numeric":
		return numerics.Match(text) || slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, string(text))
	}
	return utf8.Valid(text) && bytes.IndexByte(text, 0) < 0
}
