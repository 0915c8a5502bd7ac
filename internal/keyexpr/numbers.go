package keyexpr

import (
	"fmt"
	"math"
	"strconv"

	"example.com/tsimport/internal/table"
)

// Limits on the number of digits.
const (
	MaxPadDigits    = 64 // limit of pad for strings; an integer has at most 19 digits
	MaxSignedDigits = 19
	descDigits      = 19 // digits of the largest integer
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000" // MaxPadDigits zeros

// pad compiles a number padded with zeros, so that it sorts as text. A string must consist of digits.
func (c *compiler) pad(k *call) *node {
	x := c.operand(k, 0, table.Integer, table.String)
	signed := k.keyword(2, "signed")
	if len(k.args) == 3 && !signed {
		panic(k.refusef("the third argument can only be the word signed; want %s", k.usage))
	}
	if signed {
		return c.padSigned(k, x)
	}
	width := int(k.number(1, MaxPadDigits))
	n := &node{typ: table.String, src: k.src, order: numberOrder(x, k.src), width: width,
		recipe: fmt.Sprintf("%s as %d decimal digits with leading zeros", x.recipe, width),
		python: fmt.Sprintf("%s.zfill(%d)", textPython(x), width)}
	if x.typ == table.Integer {
		n.tells = x.tells
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		v := x.value(e, row)
		switch v.Type {
		case table.Integer:
			e.buf = e.buf[:start]
			return e.padInteger(n, v.Int, width)
		case table.String:
			at := len(e.buf)
			ok := e.padDigits(n, v.Bytes, width)
			e.buf = e.buf[:start+copy(e.buf[start:], e.buf[at:])]
			return ok
		case table.Null:
			return false
		}
		return e.fail(n, table.CodeType, e.shown(v), "%s has no digits to pad; use int(…)", a(v.Type))
	}
	return n
}

func (e *Evaluator) padInteger(n *node, v int64, width int) bool {
	if v < 0 {
		return e.fail(n, table.CodeRange, e.shown(table.Value{Type: table.Integer, Int: v}),
			"%d is negative and would break the order; use pad(x, %d, signed)", v, min(width, MaxSignedDigits))
	}
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], v, 10)
	if len(text) > width {
		return e.fail(n, table.CodeRange, text, "%d has %d digits, the width is %d; use a larger one", v, len(text), width)
	}
	e.buf = append(append(e.buf, zeros[:width-len(text)]...), text...)
	return true
}

func (e *Evaluator) padDigits(n *node, text []byte, width int) bool {
	for _, b := range text {
		if b-'0' > 9 {
			return e.fail(n, table.CodeType, text,
				"%q has other characters than digits, so pad cannot order it; leave it out, or use int(…)", table.Show(text))
		}
	}
	if len(text) == 0 || len(text) > width {
		return e.fail(n, table.CodeRange, text, "%q has %d digits; want 1 to %d", table.Show(text), len(text), width)
	}
	e.buf = append(append(e.buf, zeros[:width-len(text)]...), text...)
	return true
}

// padSigned compiles pad(x, n, signed). It puts a 0 before a number that is not negative, and writes a negative one as
// "-" and 10^n plus the number, so that -2 sorts before -1. "-" sorts before "0" and after the usual separator ",".
func (c *compiler) padSigned(k *call, x *node) *node {
	if x.typ == table.String {
		panic(k.refusef("%s is a string; write pad(int(%s), …, signed)", brief(x.src), brief(x.src)))
	}
	width := int(k.number(1, MaxSignedDigits))
	beyond := uint64(1)
	for range width {
		beyond *= 10
	}
	n := &node{typ: table.String, src: k.src, order: reorder(x, k.src, false, false), width: width + 1, signed: true,
		tells: x.tells,
		recipe: fmt.Sprintf(
			`%s as "0" and %d decimal digits with leading zeros, or if it is negative as "-" and that of 10^%d + it`, x.recipe,
			width, width),
		python: fmt.Sprintf(`("0" + str(%s).zfill(%d) if %s >= 0 else "-" + str(10**%d + %s).zfill(%d))`, x.python, width,
			x.python, width, x.python, width)}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		v := x.value(e, row)
		e.buf = e.buf[:start]
		if v.Type != table.Integer {
			if v.Type != table.Null {
				e.fail(n, table.CodeType, e.shown(v), "%s is not an integer; use int(…)", a(v.Type))
			}
			return false
		}
		size, sign := uint64(v.Int), byte('0')
		if v.Int < 0 {
			size, sign = -size, '-'
		}
		if size >= beyond {
			return e.fail(n, table.CodeRange, e.shown(v), "%d has more than %d digits; use a larger width", v.Int, width)
		}
		if sign == '-' {
			size = beyond - size
		}
		var room [20]byte
		text := strconv.AppendUint(room[:0], size, 10)
		e.buf = append(append(append(e.buf, sign), zeros[:width-len(text)]...), text...)
		return true
	}
	return n
}

// desc compiles the largest integer minus x, which reverses the order. As text it has 19 digits.
func (c *compiler) desc(k *call) *node {
	x := c.operand(k, 0, table.Integer)
	if len(k.args) == 2 {
		form := k.literal(1)
		if form != "text" {
			panic(k.refusef("%q is not a valid form; want %s", form, k.usage))
		}
	}
	n := &node{typ: table.Integer, src: k.src, order: reorder(x, k.src, true, false), tells: x.tells,
		recipe: fmt.Sprintf("%d - %s", int64(math.MaxInt64), x.recipe),
		python: fmt.Sprintf("(2**63 - 1 - %s)", x.python)}
	left := func(e *Evaluator, row []table.Value) table.Value {
		v := x.value(e, row)
		switch {
		case v.Type == table.Null:
			return v
		case v.Type != table.Integer:
			e.fail(n, table.CodeType, e.shown(v), "%s is not an integer; use int(…)", a(v.Type))
			return null
		case v.Int < 0:
			e.fail(n, table.CodeRange, e.shown(v), "%d is negative; the difference would not fit 64 bits", v.Int)
			return null
		}
		v.Int = math.MaxInt64 - v.Int
		return v
	}
	if len(k.args) == 1 {
		n.value = left
		return n
	}
	n.typ, n.width = table.String, descDigits
	n.recipe += ", as 19 digits"
	n.python = fmt.Sprintf("str%s.zfill(19)", n.python)
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		v := left(e, row)
		e.buf = e.buf[:start]
		return v.Type != table.Null && e.padInteger(n, v.Int, descDigits)
	}
	return n
}
