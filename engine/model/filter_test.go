package model

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
)

// Filter is a condition on the cells of a row.
type Filter interface {
	keeps(cells []Cell) bool
}

// Comparator compares a cell's value with a filter's.
type Comparator int

// The comparators, numbered as in the protocol.
const (
	Equal Comparator = iota + 1
	NotEqual
	Greater
	GreaterEqual
	Less
	LessEqual
)

// Compare is a condition on one column.
type Compare struct {
	Column          string
	Comparator      Comparator
	Value           any
	FilterIfMissing bool
	LatestOnly      bool
	Rule            *Rule // nil is none
}

// Rule takes a value out of a text: the pattern's first group, or all that it matches, turned into the type of As.
type Rule struct {
	Pattern string
	As      any // int64(0), 0.0 or ""
}

func (r *Rule) value(v any) (any, bool) {
	text, ok := v.(string)
	if !ok {
		return nil, false
	}
	match := regexp.MustCompile(r.Pattern).FindStringSubmatch(text)
	if match == nil {
		return nil, false
	}
	text = match[min(1, len(match)-1)]
	switch r.As.(type) {
	case int64:
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case float64:
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	}
	return text, true
}

func (f *Compare) keeps(cells []Cell) bool {
	var versions []Cell
	for _, c := range cells {
		if c.Name == f.Column {
			versions = append(versions, c)
		}
	}
	if len(versions) == 0 {
		return !f.FilterIfMissing
	}
	if f.LatestOnly {
		versions = versions[:1]
	}
	return slices.ContainsFunc(versions, func(c Cell) bool { return f.holds(c.Value) })
}

// holds compares; values of different types compare as nothing.
func (f *Compare) holds(v any) bool {
	if f.Rule != nil {
		taken, ok := f.Rule.value(v)
		if !ok {
			return false
		}
		v = taken
	}
	order, ok := compareAttributes(v, f.Value)
	if !ok {
		return false
	}
	switch f.Comparator {
	case Equal:
		return order == 0
	case NotEqual:
		return order != 0
	case Greater:
		return order > 0
	case GreaterEqual:
		return order >= 0
	case Less:
		return order < 0
	}
	return order <= 0
}

// compareAttributes compares two values of one type.
func compareAttributes(a, b any) (order int, sameType bool) {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return cmp.Compare(x, y), ok
	case float64:
		y, ok := b.(float64)
		return cmp.Compare(x, y), ok
	case bool:
		y, ok := b.(bool)
		return map[bool]int{true: 1}[x] - map[bool]int{true: 1}[y], ok
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case []byte:
		y, ok := b.([]byte)
		return bytes.Compare(x, y), ok
	}
	return 0, false
}

// Not, And and Or combine filters.
type (
	Not struct{ Of Filter }
	And []Filter
	Or  []Filter
)

func (f *Not) keeps(cells []Cell) bool { return !f.Of.keeps(cells) }

func (f And) keeps(cells []Cell) bool {
	return !slices.ContainsFunc(f, func(g Filter) bool { return !g.keeps(cells) })
}

func (f Or) keeps(cells []Cell) bool {
	return slices.ContainsFunc(f, func(g Filter) bool { return g.keeps(cells) })
}

// Pagination cuts a row's columns by their order; it is a filter of reads only, and keeps every row.
type Pagination struct{ Offset, Limit int }

func (f *Pagination) keeps([]Cell) bool { return true }

func (f *Pagination) cut(cells []Cell) []Cell {
	var names []string
	kept := []Cell{}
	for _, c := range cells {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
		if n := len(names) - 1; n >= f.Offset && n < f.Offset+f.Limit {
			kept = append(kept, c)
		}
	}
	return kept
}
