package keyexpr

import "example.com/tsimport/internal/table"

// Order is the order of a part of a key relative to its input column.
type Order string

// The orders. A coarse order maps ranges of values to equal keys, as a month does for times.
const (
	Ascending        Order = "ascending"
	Descending       Order = "descending"
	CoarseAscending  Order = "coarse ascending"
	CoarseDescending Order = "coarse descending"
	Constant         Order = "constant"
	NoOrder          Order = "none"
)

// Segment is a part of a key with one meaning. Rows are ordered by the first segment, then by the second, and so on.
type Segment struct {
	Text   string `json:"text"`             // the source of this part
	Column string `json:"column,omitempty"` // the only column that it depends on
	Order  Order  `json:"order"`
	Values int    `json:"values,omitempty"` // largest possible number of values; 0 if unknown
}

// unordered returns the order of a function that keeps no order. values is its largest number of values, or 0.
func unordered(src string, values int) []Segment {
	return []Segment{{Text: src, Order: NoOrder, Values: values}}
}

// single returns the segment of a part if there is exactly one and it is ordered by a column.
func single(order []Segment) (Segment, bool) {
	if len(order) != 1 || order[0].Column == "" || order[0].Order == NoOrder || order[0].Order == Constant {
		return Segment{}, false
	}
	return order[0], true
}

// reorder returns the order of a monotonic function of n.
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

// numberOrder returns the order of the number in a string. Only digits of equal length sort like their numbers.
func numberOrder(x *node, src string) []Segment {
	if x.typ == table.String && !x.plain && (x.width == 0 || x.signed) {
		return unordered(src, 0)
	}
	return reorder(x, src, false, false)
}

// textOrder returns the order of a part's text. Numbers do not sort like their texts.
func textOrder(n *node) []Segment {
	if n.typ == table.String {
		return n.order
	}
	return unordered("text("+n.src+")", 0)
}
