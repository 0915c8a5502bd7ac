package filter

import (
	"encoding/binary"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/engine/wire"
)

// rule is a ValueTransferRule: it says which part of a STRING is compared, and as which type.
type rule struct {
	regex *regexp.Regexp
	group int // the group to compare: the first, or 0 for the whole match
	size  int // approximate number of instructions
	cast  wire.ValueType
}

// newRule compiles an expression of at most room instructions.
func newRule(room int, regex []byte, cast wire.ValueType) (*rule, *wire.Error) {
	if len(regex) > MaxRegexBytes {
		return nil,
			wire.Invalid("The length of regex in ValueTransferRule exceeds the limit, limit size: %d, current size: %d.",
				MaxRegexBytes, len(regex))
	}
	if cast != wire.Integer && cast != wire.Double && cast != wire.String {
		return nil, wire.Invalid("%s is an invalid cast type of ValueTransferRule.", cast)
	}
	if !utf8.Valid(regex) {
		return nil, wire.Invalid("The regex in ValueTransferRule must be UTF8 encoding.")
	}
	text := string(regex)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, wire.Invalid("Invalid regex in ValueTransferRule: %v.", err)
	}
	n := size(parsed)
	if n > room {
		return nil, wire.Invalid("Invalid regex in ValueTransferRule: `%s` is too complex, counting its repeats and the "+
			"filter's other expressions.", text)
	}
	compiled := regexp.MustCompile(text) // cannot fail, because it is parsed as above
	return &rule{compiled, min(1, compiled.NumSubexp()), n, cast}, nil
}

// size estimates the number of instructions of an expression; more than MaxRegexSize count as one more. The parser
// limits the depth of the recursion.
func size(re *syntax.Regexp) (n int) {
	for _, sub := range re.Sub {
		n = min(n+size(sub), MaxRegexSize+1)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpConcat:
	case syntax.OpAlternate:
		n += len(re.Sub) - 1
	case syntax.OpCapture:
		n += 2
	case syntax.OpRepeat:
		times := re.Max
		if re.Max != re.Min {
			n++
		}
		if re.Max < 0 {
			times = re.Min + 1
		}
		n *= max(1, times)
	default:
		n++
	}
	return min(n, MaxRegexSize+1)
}

// apply returns the value to compare. ok is false if c is not a STRING, if the expression does not match, if its group
// did not take part in the match, or if the matched text cannot be cast.
func (r *rule) apply(c *wire.Cell) (v wire.Cell, ok bool) {
	if c.Type != wire.String {
		return v, false
	}
	at := r.regex.FindSubmatchIndex(c.Value)
	if at == nil || at[2*r.group] < 0 {
		return v, false
	}
	text := c.Value[at[2*r.group]:at[2*r.group+1]]
	v.Type = r.cast
	switch r.cast {
	case wire.Integer:
		i, err := strconv.ParseInt(string(text), 10, 64)
		v.Value = binary.LittleEndian.AppendUint64(nil, uint64(i))
		return v, err == nil
	case wire.Double:
		// ParseFloat also accepts hexadecimal numbers, and names such as NaN.
		if strings.Trim(string(text), "0123456789+-.eE") != "" {
			return v, false
		}
		f, err := strconv.ParseFloat(string(text), 64)
		v.Value = binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
		return v, err == nil
	}
	v.Value = text
	return v, true
}
