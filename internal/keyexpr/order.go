package keyexpr

import "example.com/tsimport/internal/table"

// Order is the order of a part of a key relative to its input column.
type Order string

// The orders. A coarse one puts ranges of values together, in order, such as the months of times.
const (
	Ascending        Order = "ascending"
	Descending       Order = "descending"
	CoarseAscending  Order = "coarse ascending"
	CoarseDescending Order = "coarse descending"
	Constant         Order = "constant"
	NoOrder          Order = "none"
)

// Segment is a stretch of a key with one meaning. Rows are in the order of the first segment, then of the second.
type Segment struct {
	Text   string `json:"text"`             // as the expression has it
	Column string `json:"column,omitempty"` // the only column in it
	Order  Order  `json:"order"`
	Values int    `json:"values,omitempty"` // how many values it can have at most, 0 if that is not known
}

// unordered is the order of a function that scrambles its input into at most that many values.
func unordered(src string, values int) []Segment {
	return []Segment{{Text: src, Order: NoOrder, Values: values}}
}

// single returns the one column that determines a part's order.
func single(order []Segment) (Segment, bool) {
	if len(order) != 1 || order[0].Column == "" || order[0].Order == NoOrder || order[0].Order == Constant {
		return Segment{}, false
	}
	return order[0], true
}

// reorder is the order of a monotonic function of an ordered value.
func reorder(n *node, src string, descending, coarse bool) []Segment {
	s, ok := single(n.order)
	if !ok {
		return unordered(src, 0)
	}
	down := descending != (s.Order == Descending || s.Order == CoarseDescending)
	coarse = coarse || s.Order == CoarseAscending || s.Order == CoarseDescending
	s.Text, s.Values = src, 0
	switch {
	case coarse && down:
		s.Order = CoarseDescending
	case coarse:
		s.Order = CoarseAscending
	case down:
		s.Order = Descending
	default:
		s.Order = Ascending
	}
	return []Segment{s}
}

// numberOrder is the order of the number in a text. Digits sort like their numbers only if all have the same length.
func numberOrder(x *node, src string) []Segment {
	if x.typ == table.String && !x.plain && (x.width == 0 || x.signed) {
		return unordered(src, 0)
	}
	return reorder(x, src, false, false)
}

// textOrder is the order of a part's text: for numbers it is not their own.
func textOrder(n *node) []Segment {
	if n.typ == table.String {
		return n.order
	}
	return unordered("text("+n.src+")", 0)
}
