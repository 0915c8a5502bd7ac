package encode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"example.com/tsimport/internal/table"
)

// brief checks a row like Append, given its key's size, appends a Body that is not whole, and returns the row's size.
func (e *Encoder) brief(b *table.Block, values []table.Value, stamps []int64, size int) (int, *table.Reason) {
	if e.mode != table.Delete {
		if values = values[len(e.keys):]; stamps != nil {
			stamps = stamps[len(e.keys):]
		}
		e.sum = 0
		var why *table.Reason
		if size, why = e.cells(nil, values, stamps, size); why != nil {
			return 0, why
		}
	}
	if e.Body == HashedBody {
		body := len(b.Data)
		if e.mode != table.Delete {
			b.Data = e.appendContent(b.Data, values, stamps)
		}
		b.Data = binary.NativeEndian.AppendUint64(b.Data[:body], table.HashKey(b.Data[body:]))
	}
	if e.Body == KeptBody {
		b.Data = append(b.Data, keptTag)
	}
	if e.Body >= SummedBody {
		b.Data = binary.LittleEndian.AppendUint64(b.Data, e.sum)
	}
	if e.Body == KeptBody {
		b.Data = e.appendContent(b.Data, values, nil)
	}
	return size, nil
}

// keptTag is the first byte of a KeptBody. PlainBuffer bytes never begin with it.
const keptTag = 0

// SumOf returns the sum in a SummedBody or KeptBody. ok is false if body is PlainBuffer.
func SumOf(body []byte) (sum []byte, ok bool) {
	if len(body) == SumBytes {
		return body, true
	}
	if ok = body[0] == keptTag; ok {
		sum = body[1:][:SumBytes]
	}
	return sum, ok
}

// Unkept returns the PlainBuffer bytes of a row, given its key and KeptBody. The encoder must make WholeBody rows.
func (e *Encoder) Unkept(key []table.Value, body []byte) ([]byte, error) {
	if body[0] != keptTag {
		return body, nil
	}
	values, rest := slices.Clone(key), body[1+SumBytes:]
	for range e.columns {
		v, n := keptValue(rest)
		if n == 0 {
			return nil, errors.New("a stored row is damaged")
		}
		values, rest = append(values, v), rest[n:]
	}
	var b table.Block
	if why := e.Append(&b, values, nil, table.Span{}, nil); why != nil {
		return nil, fmt.Errorf("a stored row is damaged: %s", why.Message)
	}
	return table.Ref{Block: &b}.Body(), nil
}

// keptValue decodes a value that appendValue appended without a timestamp. It returns a length of 0 if it is damaged.
func keptValue(b []byte) (v table.Value, n int) {
	if len(b) == 0 {
		return v, 0
	}
	v.Type = table.Type(b[0])
	switch rest := b[1:]; {
	case v.Type == table.Null:
		return v, 1
	case v.Type == table.String || v.Type == table.Binary:
		length, size := binary.Uvarint(rest)
		if size <= 0 || length > uint64(len(rest)-size) {
			return v, 0
		}
		v.Bytes = rest[size:][:length]
		return v, 1 + size + int(length)
	case len(rest) < 8:
		return v, 0
	case v.Type == table.Double:
		v.Double = math.Float64frombits(binary.BigEndian.Uint64(rest))
	default:
		v.Int = int64(binary.BigEndian.Uint64(rest))
	}
	return v, 9
}

// Flags that appendContent adds to a value's type.
const (
	stampedFlag = 0x40
	deletedFlag = 0x80
)

// appendContent appends a row's cells compactly. Rows with the same key have equal bytes only if their cells are equal.
func (e *Encoder) appendContent(dst []byte, values []table.Value, stamps []int64) []byte {
	for i := range values {
		at := int64(-1)
		if stamps != nil {
			at = stamps[i]
		}
		dst = e.appendValue(dst, &values[i], at)
	}
	for i := range e.Cells {
		c := &e.Cells[i]
		if c.Value.Type == table.Null && !e.deleteNull { // with deleteNull, an absent cell is part of the content
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(c.Name.text)))
		dst = append(dst, c.Name.text...)
		v := c.Value
		v.Absent = false
		dst = e.appendValue(dst, &v, c.At)
	}
	return dst
}

func (e *Encoder) appendValue(dst []byte, v *table.Value, at int64) []byte {
	kind := byte(v.Type)
	if v.Type == table.Null {
		if e.deleteNull && !v.Absent {
			kind |= deletedFlag
		}
		return append(dst, kind)
	}
	if at >= 0 && e.mode != table.Increment {
		dst = binary.BigEndian.AppendUint64(append(dst, kind|stampedFlag), uint64(at))
	} else {
		dst = append(dst, kind)
	}
	switch v.Type {
	case table.Double:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Double))
	case table.String, table.Binary:
		return append(binary.AppendUvarint(dst, uint64(len(v.Bytes))), v.Bytes...)
	default:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int))
	}
}
