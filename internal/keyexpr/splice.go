package keyexpr

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"example.com/tsimport/internal/table"
)

// splice compiles parts joined with a separator of one character. It keeps the order of strings; numbers need pad. The
// package comment says which values it refuses.
func (c *compiler) splice(k *call) *node {
	n := &node{typ: table.String, src: k.src}
	separator := c.separator(k)
	joined := string(separator)
	if separator == 0 {
		joined = "…"
	}
	var parts []*node
	n.width = (len(k.args) - 2) * len(joined)
	for i := range k.args[1:] {
		x := c.operand(k, i+1)
		parts = append(parts, x)
		n.tells = union(n.tells, x.textTells())
		n.signed = n.signed || x.signed
		inner := slices.Clone(piecesOf(x))
		if i < len(k.args)-2 {
			inner[len(inner)-1].sealed = true // the separator sorts below all its characters
			inner = append(inner, piece{node: constant(table.Value{Type: table.String, Bytes: []byte(joined)}), sealed: true,
				separator: true})
		}
		n.pieces = append(n.pieces, inner...)
		if i > 0 {
			n.recipe += ", "
			n.python += ", "
		}
		n.recipe += x.recipe
		n.python += textPython(x)
		if n.width += x.width; x.width == 0 {
			n.width = -1 << 30
		}
	}
	n.width = max(n.width, 0)
	n.order = joinedOrder(n.pieces)
	n.recipe = fmt.Sprintf("joined with %q: %s", joined, n.recipe)
	n.python = fmt.Sprintf("%s.join([%s])", strconv.Quote(joined), n.python)
	n.text = spliceText(n, parts, separator)
	return n
}

// separator returns the separator of a splice, or 0 if it is auto and not chosen yet.
func (c *compiler) separator(k *call) rune {
	if k.keyword(0, "auto") {
		c.program.Auto = true
		return c.program.env.Separator
	}
	text, ok := k.args[0].(*ast.StringNode)
	if !ok {
		panic(k.refusef("the first argument must be a separator in quotes, or the word auto; want %s", k.usage))
	}
	r, size := utf8.DecodeRuneInString(text.Value)
	if size == 0 || size != len(text.Value) || r == utf8.RuneError || r == 0 {
		panic(k.refusef("the separator %q is not one character; to join texts of fixed width without one, use +", text.Value))
	}
	return r
}

func spliceText(n *node, parts []*node, separator rune) func(*Evaluator, []table.Value) bool {
	if separator == 0 {
		return func(e *Evaluator, row []table.Value) bool { return e.observe(n, parts, row) }
	}
	utf8Separator := utf8.AppendRune(nil, separator)
	return func(e *Evaluator, row []table.Value) bool {
		for i, x := range parts {
			if i > 0 {
				e.buf = append(e.buf, utf8Separator...)
			}
			start := len(e.buf)
			if !x.text(e, row) {
				return false
			}
			if i == 0 && len(e.buf) == start {
				return e.fail(n, CodeEmptyKey, nil, "the first part, %s, is empty; give a value, as in x == \"\" ? \"none\" : x",
					brief(x.src))
			}
			if at := firstAtOrBelow(e.buf[start:], separator); at >= 0 {
				r, _ := utf8.DecodeRune(e.buf[start+at:])
				return e.fail(n, CodeBreaksOrder, e.buf[start:], "the value of %s has the character %q, which does not sort "+
					"above the separator %q, so the order of keys would break; use a lower separator or splice(auto, …)",
					brief(x.src), r, separator)
			}
		}
		return true
	}
}

// firstAtOrBelow returns the index of the first character at or below the separator, or -1.
func firstAtOrBelow(text []byte, separator rune) int {
	if separator < utf8.RuneSelf {
		for i, b := range text {
			if b <= byte(separator) {
				return i
			}
		}
		return -1
	}
	for i, r := range string(text) {
		if r <= separator {
			return i
		}
	}
	return -1
}

func (e *Evaluator) observe(n *node, parts []*node, row []table.Value) bool {
	if e.chooser == nil {
		return e.fail(n, CodeExpression, nil, "the separator is not chosen yet; name one in place of auto")
	}
	for _, x := range parts {
		start := len(e.buf)
		if !x.text(e, row) {
			return false
		}
		e.chooser.Observe(e.buf[start:])
	}
	return true
}

// SeparatorChooser chooses a separator for splice(auto, …) that sorts below every character of the observed values.
// They are a sample: a later row with a lower character is rejected. The zero value is ready to use.
type SeparatorChooser struct {
	seen   bool
	lowest byte
}

// separators lists the candidates: the vendor's own, one below nearly all visible characters, and three below a space.
var separators = []rune{',', '!', '\x1f', '\t', '\x01'}

// Observe takes the characters of a value into account. Candidates are ASCII, so comparing bytes of UTF-8 suffices.
func (c *SeparatorChooser) Observe(text []byte) {
	for _, b := range text {
		if !c.seen || b < c.lowest {
			c.seen, c.lowest = true, b
		}
	}
}

// Choose returns the separator. The error says why there is none.
func (c *SeparatorChooser) Choose() (rune, error) {
	if !c.seen {
		return separators[0], nil
	}
	for _, r := range separators {
		if c.lowest >= utf8.RuneSelf || rune(c.lowest) > r {
			return r, nil
		}
	}
	return 0, fmt.Errorf("splice(auto, …): the values have the character %q, and no separator sorts below it; hash such "+
		"a column, e.g. md5(x, 8), or leave it out", rune(c.lowest))
}
