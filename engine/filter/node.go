package filter

import (
	"bytes"
	"cmp"
	"slices"

	"example.com/tsimport/engine/wire"
)

// node is one condition of the tree. It is true or false, never unknown, so De Morgan's laws hold for missing columns.
type node interface {
	match(*row) bool
}

type not struct{ of node }

func (n not) match(r *row) bool { return !n.of.match(r) }

type every []node

func (n every) match(r *row) bool {
	return !slices.ContainsFunc(n, func(sub node) bool { return !sub.match(r) })
}

type some []node

func (n some) match(r *row) bool {
	return slices.ContainsFunc(n, func(sub node) bool { return sub.match(r) })
}

// comparator is the protocol's ComparatorType.
type comparator int32

// exists and existsNot are from Java's SingleColumnValueRegexFilter. They test whether there is a value to compare.
const (
	equal comparator = iota + 1
	notEqual
	greater
	greaterEqual
	less
	lessEqual
	exists
	existsNot
)

// single compares one column with a constant.
type single struct {
	comparator comparator
	column     []byte
	value      wire.Cell // only Type and Value are set
	missing    bool      // the result if the column is missing
	latest     bool      // only the newest version counts; otherwise any version may match
	rule       *rule     // nil to compare the value itself
}

func (s *single) match(r *row) bool {
	versions := r.versions(s.column)
	if len(versions) == 0 {
		return s.missing
	}
	if s.latest {
		versions = versions[:1]
	}
	for i := range versions {
		if s.holds(&versions[i]) {
			return true
		}
	}
	return false
}

func (s *single) holds(c *wire.Cell) bool {
	v := *c
	there := true
	if s.rule != nil {
		v, there = s.rule.apply(c)
	}
	switch {
	case s.comparator == exists:
		return there
	case s.comparator == existsNot:
		return !there
	}
	// With a value of another type every comparison fails, even "not equal".
	return there && v.Type == s.value.Type && s.comparator.holds(compare(&v, &s.value))
}

func (c comparator) holds(order int) bool {
	switch c {
	case equal:
		return order == 0
	case notEqual:
		return order != 0
	case greater:
		return order > 0
	case greaterEqual:
		return order >= 0
	case less:
		return order < 0
	default:
		return order <= 0
	}
}

// compare compares two values of one type: numbers by value (0 equals -0), false before true, others by their bytes.
func compare(a, b *wire.Cell) int {
	switch a.Type {
	case wire.Integer:
		return cmp.Compare(a.Int(), b.Int())
	case wire.Double:
		return cmp.Compare(a.Float(), b.Float())
	default:
		return bytes.Compare(a.Value, b.Value)
	}
}
