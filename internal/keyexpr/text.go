package keyexpr

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
)

func (c *compiler) col(k *call) *node {
	name := k.literal(0)
	return c.column(name)
}

// textOf compiles text(x). It keeps the order of strings, but not of numbers.
func (c *compiler) textOf(k *call) *node {
	x := c.operand(k, 0)
	n := &node{typ: table.String, src: k.src, order: textOrder(x), width: x.width, plain: x.plain && x.typ == table.String,
		signed: x.signed,
		tells:  x.textTells(), digits: x.typ == table.Integer || x.digits,
		recipe: x.recipe, python: textPython(x), text: x.text}
	if x.typ == table.String {
		n.value = x.value
	} else if _, ordered := single(x.order); ordered {
		n.recipe += " as text"
	}
	return n
}

// integer compiles int(x). It keeps the order of numbers and of strings of digits of fixed width.
func (c *compiler) integer(k *call) *node {
	x := c.operand(k, 0, table.String, table.Integer, table.Double)
	n := &node{typ: table.Integer, src: k.src, order: numberOrder(x, k.src), recipe: x.recipe + " as a number",
		python: "int(" + x.python + ")"}
	if x.typ == table.Integer {
		n.tells = x.tells
	}
	n.value = func(e *Evaluator, row []table.Value) table.Value {
		v := x.value(e, row)
		switch v.Type {
		case table.Null, table.Integer:
			return v
		case table.Double:
			if v.Double == math.Trunc(v.Double) && v.Double >= -1<<63 && v.Double < 1<<63 {
				return table.Value{Type: table.Integer, Int: int64(v.Double)}
			}
			e.fail(n, table.CodeType, e.shown(v), "%v is not a 64-bit integer; round it in the expression", v.Double)
		case table.String:
			if i, err := strconv.ParseInt(string(v.Bytes), 10, 64); err == nil {
				return table.Value{Type: table.Integer, Int: i}
			}
			e.fail(n, table.CodeType, v.Bytes, "%q is not a 64-bit integer", table.Show(v.Bytes))
		default:
			e.fail(n, table.CodeType, e.shown(v), "cannot make an integer of %s", a(v.Type))
		}
		return null
	}
	return n
}

// letters compiles lower and upper, which do not keep the order: "B" < "a", but "b" > "a".
func (c *compiler) letters(k *call) *node {
	x := c.operand(k, 0, table.String)
	change, from, python := unicode.ToUpper, byte('a'), `"".join(c.upper() if len(c.upper()) == 1 else c for c in %s)`
	if k.name == "lower" {
		change, from, python = unicode.ToLower, 'A', `"".join(c.lower()[0] for c in %s)`
	}
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, 0), recipe: x.recipe + " in " + k.name + " case",
		python: fmt.Sprintf(python, textPython(x))}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		if !e.stringOf(n, x, row) {
			return false
		}
		for i, b := range e.buf[start:] {
			if b >= utf8.RuneSelf {
				e.changeRunes(start, change)
				return true
			}
			if b-from < 26 {
				e.buf[start+i] = b ^ 0x20
			}
		}
		return true
	}
	return n
}

// changeRunes replaces each character in e.buf from start on.
func (e *Evaluator) changeRunes(start int, change func(rune) rune) {
	end := len(e.buf)
	for at := start; at < end; {
		r, size := utf8.DecodeRune(e.buf[at:end])
		at += size
		e.buf = utf8.AppendRune(e.buf, change(r))
	}
	e.buf = slices.Delete(e.buf, start, end)
}

// stringOf appends the text of a string or an integer to e.buf. A value of any other type is a failure.
func (e *Evaluator) stringOf(n, x *node, row []table.Value) bool {
	if x.typ != table.Any {
		return x.text(e, row)
	}
	start := len(e.buf)
	v := x.value(e, row)
	if v.Type == table.String || v.Type == table.Integer {
		e.buf = appendText(e.buf[:start], v)
		return true
	}
	if v.Type != table.Null {
		e.fail(n, table.CodeType, e.shown(v), "%s is not a text; use text(…)", a(v.Type))
	}
	return false
}

// substr compiles a part of a string. It keeps a coarse order if it starts at the first character.
func (c *compiler) substr(k *call) *node {
	x := c.operand(k, 0, table.String, table.Integer)
	from := k.number(1, table.MaxValueBytes)
	most, end := int64(math.MaxInt64), ""
	if len(k.args) == 3 {
		most = k.number(2, table.MaxValueBytes)
		end = strconv.FormatInt(from-1+most, 10)
	}
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, 0)}
	n.recipe = "characters " + strconv.FormatInt(from, 10) + " to " + cmp.Or(end, "the last") + " of " + x.recipe
	n.python = textPython(x) + "[" + strconv.FormatInt(from-1, 10) + ":" + end + "]"
	if from == 1 && x.typ == table.String {
		n.order = reorder(x, k.src, false, true)
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		if !e.stringOf(n, x, row) {
			return false
		}
		head := start + prefixBytes(e.buf[start:], from-1)
		tail := head + prefixBytes(e.buf[head:], most)
		e.buf = append(e.buf[:start], e.buf[head:tail]...)
		return true
	}
	return n
}

// prefixBytes returns the length, in bytes, of the first n characters.
func prefixBytes(text []byte, n int64) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// reverse compiles a string or integer written backwards, so that its fast-changing end is first. It keeps no order.
func (c *compiler) reverse(k *call) *node {
	x := c.operand(k, 0, table.String, table.Integer)
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, 0), width: x.width, tells: x.textTells(),
		recipe: x.recipe + " written backwards", python: textPython(x) + "[::-1]"}
	if x.typ == table.String && n.width > 0 && x.constant != nil {
		n.width = len(x.constant.Bytes)
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		v := x.value(e, row)
		switch {
		case v.Type == table.Null:
			return false
		case v.Type == table.Integer && v.Int < 0:
			return e.fail(n, table.CodeRange, e.shown(v), "%d is negative; only the digits of 0 and more are reversed", v.Int)
		case v.Type != table.Integer && v.Type != table.String:
			return e.fail(n, table.CodeType, e.shown(v), "%s is not a text; use text(…)", a(v.Type))
		}
		e.buf = appendText(e.buf[:start], v)
		slices.Reverse(e.buf[start:])
		// The bytes within each character have also been reversed; reverse them back.
		for at := start; at < len(e.buf); at++ {
			first := at
			for e.buf[at] >= utf8.RuneSelf && !utf8.RuneStart(e.buf[at]) && at+1 < len(e.buf) {
				at++
			}
			slices.Reverse(e.buf[first : at+1])
		}
		return true
	}
	return n
}
