package filter

import (
	"bytes"
	"cmp"
	"slices"

	"example.com/tsimport/engine/wire"
)

// node is one condition of the tree. Its verdict is yes or no: De Morgan's laws hold even for missing columns.
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

// comparator is protobuf's ComparatorType.
type comparator int32

// The last two are from Java's SingleColumnValueRegexFilter: whether there is a value to compare.
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
	value      wire.Cell // its Type and Value
	missing    bool      // the verdict when the column is missing
	latest     bool      // only the newest version counts; else any version may satisfy
	rule       *rule     // nil compares the value itself
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
	// A value of another type compares as nothing: it is not even unequal.
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

// compare orders two values of one type: numbers by value (0 and -0 are equal), false before true, others by bytes.
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
