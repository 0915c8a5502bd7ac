package writer

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// answered is the service's answer for one row. Its bytes are views into the answer.
type answered struct {
	ok      bool
	code    []byte
	message []byte
	writeCU int
	row     []byte // PlainBuffer bytes of the requested row content, such as the primary key; nil if there is none
	rows    int    // number of consecutive rows with this answer
}

var errAnswer = errors.New("malformed response: not a BatchWriteRow response")

// decodeAnswer reads into dst the answer to a request of rows of one table, in the request's order: one answered for
// each run of equal answers. An answer with another number of rows is an error: only its place says whose a result is.
func decodeAnswer(dst []answered, body []byte, name string, rows int) ([]answered, error) {
	dst = dst[:0]
	for len(body) > 0 {
		number, f, rest, ok := field(body)
		if !ok {
			return nil, errAnswer
		}
		if body = rest; number != 1 {
			continue
		}
		if f.kind != protowire.BytesType {
			return nil, errAnswer
		}
		var err error
		if dst, err = decodeTable(dst, f.bytes, name); err != nil {
			return nil, err
		}
	}
	n := 0
	for i := range dst {
		n += dst[i].rows
	}
	if n != rows {
		return nil, fmt.Errorf("malformed response: %d results for %d rows", n, rows)
	}
	return dst, nil
}

// decodeTable reads the rows in a table's part of an answer. It skips the part of another table.
func decodeTable(dst []answered, b []byte, name string) ([]answered, error) {
	from := len(dst)
	ours := false
	var last []byte
	for len(b) > 0 {
		number, f, rest, ok := field(b)
		if !ok {
			return nil, errAnswer
		}
		b = rest
		if (number == 1 || number == 2) && f.kind != protowire.BytesType {
			return nil, errAnswer
		}
		switch number {
		case 1:
			ours = string(f.bytes) == name
		case 2:
			// Most rows of a request have the same answer.
			if last != nil && bytes.Equal(last, f.bytes) {
				dst[len(dst)-1].rows++
				continue
			}
			a, err := decodeRow(f.bytes)
			if err != nil {
				return nil, err
			}
			a.rows = 1
			dst, last = append(dst, a), f.bytes
		}
	}
	if !ours {
		dst = dst[:from]
	}
	return dst, nil
}

func decodeRow(b []byte) (a answered, err error) {
	said, failed := false, false
	for len(b) > 0 {
		number, f, rest, ok := field(b)
		if !ok || number <= 4 && (f.kind == protowire.BytesType) != (number > 1) {
			return a, errAnswer
		}
		b = rest
		switch number {
		case 1:
			ok = !said && f.kind == protowire.VarintType && f.number <= 1
			a.ok, said = f.number == 1, true
		case 2:
			failed = true
			a.code, a.message, ok = decodeError(f.bytes)
		case 3:
			a.writeCU, ok = decodeConsumed(f.bytes)
		case 4:
			a.row = f.bytes
		}
		if !ok {
			return a, errAnswer
		}
	}
	switch {
	case !said || !a.ok && len(a.code) == 0:
		return a, errors.New("malformed response: a row without a result")
	case a.ok && failed:
		return a, errors.New("malformed response: a row was written and has an error")
	}
	return a, nil
}

func decodeError(b []byte) (code, message []byte, ok bool) {
	for len(b) > 0 {
		number, f, rest, ok := field(b)
		if !ok {
			return nil, nil, false
		}
		b = rest
		switch number {
		case 1:
			code = f.bytes
		case 2:
			message = f.bytes
		}
	}
	return code, message, true
}

func decodeConsumed(b []byte) (write int, ok bool) {
	for len(b) > 0 {
		number, unit, rest, ok := field(b)
		if !ok {
			return 0, false
		}
		b = rest
		for number == 1 && len(unit.bytes) > 0 {
			n, f, rest, ok := field(unit.bytes)
			if !ok {
				return 0, false
			}
			if unit.bytes = rest; n == 2 {
				write = max(write, int(int32(f.number)))
			}
		}
	}
	return write, true
}

// value is a field's value: the number of a varint, or the bytes of a length-delimited field. Other types are skipped.
type value struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

// field returns the first field of a message and the rest of the message.
func field(b []byte) (number protowire.Number, v value, rest []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, v, nil, false
	}
	b, n, v.kind = b[n:], -1, kind
	switch kind {
	case protowire.VarintType:
		v.number, n = protowire.ConsumeVarint(b)
	case protowire.BytesType:
		v.bytes, n = protowire.ConsumeBytes(b)
	case protowire.Fixed32Type, protowire.Fixed64Type:
		n = protowire.ConsumeFieldValue(number, kind, b)
	}
	if n < 0 {
		return 0, v, nil, false
	}
	return number, v, b[n:], true
}

// unreadable is deferred to turn a panic into an error: the SDK dereferences fields that a broken answer lacks.
func unreadable(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("malformed response: %v", p)
	}
}
