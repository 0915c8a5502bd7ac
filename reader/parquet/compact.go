package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Element types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

const maxThriftDepth = 64

var errThrift = errors.New("metadata is not a Thrift structure")

// compact reads Thrift's compact protocol. It skips unknown fields and keeps the first error. Input bounds allocations.
type compact struct {
	b     []byte
	i     int
	depth int
	err   error
}

func (c *compact) fail(err error) {
	if c.err == nil {
		c.err = err
		c.i = len(c.b)
	}
}

func (c *compact) byte() byte {
	if c.i >= len(c.b) {
		c.fail(io.ErrUnexpectedEOF)
		return 0
	}
	c.i++
	return c.b[c.i-1]
}

func (c *compact) uvarint() uint64 {
	v, n := binary.Uvarint(c.b[c.i:])
	switch {
	case n > 0:
		c.i += n
	case n == 0:
		c.fail(io.ErrUnexpectedEOF)
	default:
		c.fail(errThrift)
	}
	return v
}

func (c *compact) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// integer reads an integer of any width; t is the field's type.
func (c *compact) integer(t byte) int64 {
	switch t {
	case thriftByte:
		return int64(int8(c.byte()))
	case thriftI16, thriftI32, thriftI64:
		return c.varint()
	}
	c.fail(fmt.Errorf("%w: want an integer, found type %d", errThrift, t))
	return 0
}

func (c *compact) int32(t byte) int32 {
	v := c.integer(t)
	if v != int64(int32(v)) {
		c.fail(fmt.Errorf("%w: %d is not a 32-bit integer", errThrift, v))
	}
	return int32(v)
}

func (c *compact) bool(t byte) bool {
	if t != thriftTrue && t != thriftFalse {
		c.fail(fmt.Errorf("%w: want a boolean, found type %d", errThrift, t))
	}
	return t == thriftTrue
}

func (c *compact) text(t byte) []byte {
	if t != thriftBinary {
		c.fail(fmt.Errorf("%w: want a string, found type %d", errThrift, t))
		return nil
	}
	n := c.uvarint()
	if n > uint64(len(c.b)-c.i) {
		c.fail(io.ErrUnexpectedEOF)
		return nil
	}
	c.i += int(n)
	return c.b[c.i-int(n) : c.i]
}

// list calls element for each element of a list. It must consume the element.
func (c *compact) list(t byte, element func(t byte)) {
	if t != thriftList && t != thriftSet {
		c.fail(fmt.Errorf("%w: want a list, found type %d", errThrift, t))
		return
	}
	if !c.enter() {
		return
	}
	head := c.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = c.uvarint()
	}
	for ; n > 0 && c.err == nil; n-- {
		element(head & 15)
	}
	c.depth--
}

// structure calls field for each field of a structure. It skips fields for which field returns false.
func (c *compact) structure(field func(id int16, t byte) bool) {
	if !c.enter() {
		return
	}
	last := int16(0)
	for c.err == nil {
		head := c.byte()
		if head == 0 {
			break
		}
		if d := head >> 4; d != 0 {
			last += int16(d)
		} else {
			last = int16(c.varint())
		}
		if c.err == nil && !field(last, head&15) {
			c.skip(head&15, false)
		}
	}
	c.depth--
}

// nested is like structure, but fails unless t is a structure's type.
func (c *compact) nested(t byte, field func(id int16, t byte) bool) {
	if t != thriftStruct {
		c.fail(fmt.Errorf("%w: want a structure, found type %d", errThrift, t))
		return
	}
	c.structure(field)
}

// field says where to store a field of a structure: in *int32, *int64 (any integer), *bool, *string, or func(byte).
type field struct {
	id   int16
	into any
}

// fields reads the wanted fields of a structure and skips all others.
func (c *compact) fields(t byte, wanted ...field) {
	c.nested(t, func(id int16, t byte) bool {
		for _, f := range wanted {
			if f.id != id {
				continue
			}
			switch into := f.into.(type) {
			case *int32:
				*into = c.int32(t)
			case *int64:
				*into = c.integer(t)
			case *bool:
				*into = c.bool(t)
			case *string:
				*into = string(c.text(t))
			case func(byte):
				into(t)
			}
			return true
		}
		return false
	})
}

func (c *compact) enter() bool {
	if c.depth++; c.depth > maxThriftDepth {
		c.fail(fmt.Errorf("%w: nested too deep", errThrift))
		return false
	}
	return true
}

// skip skips a value. The value of a boolean is in its field's header, except in lists, where it is a byte.
func (c *compact) skip(t byte, element bool) {
	switch t {
	case thriftTrue, thriftFalse:
		if element {
			c.byte()
		}
	case thriftByte:
		c.byte()
	case thriftI16, thriftI32, thriftI64:
		c.uvarint()
	case thriftDouble:
		for range 8 {
			c.byte()
		}
	case thriftBinary:
		c.text(t)
	case thriftList, thriftSet:
		c.list(t, func(t byte) { c.skip(t, true) })
	case thriftMap:
		c.skipMap()
	case thriftStruct:
		c.structure(func(int16, byte) bool { return false })
	default:
		c.fail(fmt.Errorf("%w: unknown type %d", errThrift, t))
	}
}

func (c *compact) skipMap() {
	n := c.uvarint()
	if n == 0 || !c.enter() {
		return
	}
	types := c.byte()
	for ; n > 0 && c.err == nil; n-- {
		c.skip(types>>4, true)
		c.skip(types&15, true)
	}
	c.depth--
}
