package parquet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

// julianEpoch is the Julian day of 1970-01-01.
const julianEpoch = 2440588

// datum sets d to value i of the batch. Bytes are valid until the cursor moves. A refused value stays as stored.
func (c *column) datum(d *record.Datum, i int) *table.Reason {
	l := c.leaf
	*d = record.Datum{Kind: l.kind}
	if l.numeric() {
		return c.number(d, c.values.ints[i])
	}
	b := c.values.bins[i]
	switch {
	case l.physical == physInt96:
		bad := int96(d, b, l.path)
		if bad == nil && l.calendar.hybrid {
			bad = l.rebase(d)
		}
		if bad != nil {
			c.readable = hex.AppendEncode(c.readable[:0], b)
			*d = record.Datum{Kind: record.String, Bytes: c.readable}
		}
		return bad
	case l.ann == annUUID:
		c.readable = record.AppendUUID(c.readable[:0], b)
		d.Bytes = c.readable
	case l.ann == annFloat16:
		d.Double = jsontext.Half(binary.LittleEndian.Uint16(b))
	case l.kind == record.Decimal && len(b) > maxDecimalBytes:
		return &table.Reason{Column: l.path, Code: table.CodeRange,
			Message: fmt.Sprintf("the decimal has %d bytes; at most %d are read", len(b), maxDecimalBytes)}
	case l.kind == record.Decimal && len(b) == 0:
		d.Scale, d.Bytes = l.scale, c.numbers[:1] // no bytes mean 0
		c.numbers[0] = 0
	default:
		d.Scale, d.Bytes = l.scale, b
	}
	return nil
}

// maxDecimalBytes is the size of the largest decimal: conversion takes more than linear time. Others accept 16 bytes.
const maxDecimalBytes = 1 << 10

// number sets d to a value stored as a number. It refuses values outside the type: 24:00:00 would become midnight.
func (c *column) number(d *record.Datum, v int64) *table.Reason {
	l := c.leaf
	switch l.kind {
	case record.Double:
		if l.physical == physFloat {
			d.Double = float64(math.Float32frombits(uint32(v)))
		} else {
			d.Double = math.Float64frombits(uint64(v))
		}
	case record.Decimal:
		binary.BigEndian.PutUint64(c.numbers[:], uint64(v))
		d.Scale, d.Bytes = l.scale, c.numbers[:8]
	case record.Integer:
		d.Int = v
		if l.unsigned {
			d.Int = int64(uint32(v))
		}
		if d.Int < l.integers.least || d.Int > l.integers.most {
			return l.outside(d.Int, fmt.Sprintf("an integer of %d bits", l.integers.bits))
		}
	default:
		d.Int, d.Unit = v, l.unit
		d.Local = l.kind == record.Timestamp && l.local
		if l.kind == record.TimeOfDay && (v < 0 || v >= secondsOfDay*int64(l.unit)) {
			d.Kind = record.Integer
			return l.outside(v, fmt.Sprintf("a time of day, which has %d units of a second", l.unit))
		}
		if l.calendar.hybrid {
			return l.rebase(d)
		}
	}
	return nil
}

func (l *leaf) outside(v int64, what string) *table.Reason {
	return &table.Reason{Column: l.path, Code: table.CodeRange, Message: "the value is not " + what,
		Value: strconv.FormatInt(v, 10)}
}

const secondsOfDay = 86400

// int96 reads a legacy timestamp: nanoseconds of the day, then the Julian day. It returns nanoseconds from 1677 to
// 2262, microseconds for other dates. The file does not state the zone: some writers use UTC, others local time.
func int96(d *record.Datum, b []byte, column string) *table.Reason {
	nanos := int64(binary.LittleEndian.Uint64(b))
	days := int64(int32(binary.LittleEndian.Uint32(b[8:]))) - julianEpoch
	if nanos < 0 || nanos >= secondsOfDay*1e9 {
		return &table.Reason{Column: column, Code: table.CodeRange,
			Message: "the nanoseconds of the INT96 timestamp are not within a day", Value: hex.EncodeToString(b)}
	}
	d.Local = true
	seconds := days*secondsOfDay + nanos/1e9
	nanos %= 1e9
	const span = math.MaxInt64 / 1_000_000_000
	switch {
	case seconds >= -span && seconds < span:
		d.Int, d.Unit = seconds*1e9+nanos, record.Nanos
	case nanos%1000 == 0 && seconds >= -span*1000 && seconds < span*1000:
		d.Int, d.Unit = seconds*1e6+nanos/1000, record.Micros
	default:
		return &table.Reason{Column: column, Code: table.CodeRange, Message: "INT96 timestamp does not fit 64 bits",
			Value: hex.EncodeToString(b)}
	}
	return nil
}
