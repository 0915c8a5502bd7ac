package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"example.com/tsimport/reader/record"
)

const maxSchemaDepth = 100

// shape says how to write a group as JSON.
type shape uint8

const (
	shapeStruct shape = iota
	shapeList         // item is the element: the repeated child itself or that child's only field
	shapeMap          // the repeated child, item, holds the key and perhaps a value
)

// node is an element of the schema, with its place in the tree.
type node struct {
	element element
	fields  []*node
	leaf    *leaf // nil for a group
	first   *leaf // leftmost leaf below the node, or its own; may be nil
	def     int   // definition level at which the node is present
	rep     int   // repetition level
	shape   shape
	item    *node
	twice   string // a name that two of its fields have in common
}

type leaf struct {
	index    int // index in the columns of each row group
	path     string
	physical physical
	length   int
	maxDef   int
	maxRep   int
	ann      annotation
	kind     record.Kind // kind of the values; Timestamp for INT96
	scale    int32
	unit     record.Unit
	local    bool
	unsigned bool
	integers integers
	calendar calendar
}

// integers is the width in bits and the range of integers in a column.
type integers struct {
	bits        int32
	least, most int64
}

func (l *leaf) numeric() bool {
	return l.physical <= physDouble && l.physical != physInt96
}

// tree builds nodes from the list of elements in the footer.
type tree struct {
	elements []element
	leaves   []*leaf
}

func buildTree(elements []element) (*node, []*leaf, error) {
	if len(elements) == 0 {
		return nil, nil, errors.New("schema is empty")
	}
	t := &tree{elements: elements}
	root := &node{element: elements[0]}
	root.element.repetition = required
	t.elements = elements[1:]
	if err := t.children(root, nil, 0); err != nil {
		return nil, nil, err
	}
	if len(t.elements) > 0 {
		return nil, nil, fmt.Errorf("schema has %d surplus elements", len(t.elements))
	}
	if len(t.leaves) == 0 {
		return nil, nil, errors.New("file has no columns")
	}
	return root, t.leaves, nil
}

func (t *tree) children(parent *node, path []string, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("schema is nested more than %d levels deep", maxSchemaDepth)
	}
	if parent.element.children < 0 || int(parent.element.children) > len(t.elements) {
		return fmt.Errorf("group %q has an impossible number of fields: %d", parent.element.name, parent.element.children)
	}
	for range parent.element.children {
		if len(t.elements) == 0 {
			return fmt.Errorf("schema ends within group %q", parent.element.name)
		}
		n := &node{element: t.elements[0], def: parent.def, rep: parent.rep}
		t.elements = t.elements[1:]
		switch n.element.repetition {
		case required:
		case optional:
			n.def++
		case repeated:
			n.def++
			n.rep++
		default:
			return fmt.Errorf("column %q has the unknown repetition type %d", n.element.name, n.element.repetition)
		}
		path := append(path[:len(path):len(path)], n.element.name)
		if n.element.leaf && n.element.children == 0 {
			l, err := newLeaf(n, path, len(t.leaves))
			if err != nil {
				return err
			}
			n.leaf, n.first = l, l
			t.leaves = append(t.leaves, l)
		} else if err := t.children(n, path, depth+1); err != nil {
			return err
		}
		n.reshape()
		parent.first = cmp.Or(parent.first, n.first)
		parent.fields = append(parent.fields, n)
	}
	names := make(map[string]bool, len(parent.fields))
	for _, n := range parent.fields {
		if names[n.element.name] {
			parent.twice = n.element.name
		}
		names[n.element.name] = true
	}
	return nil
}

// reshape recognises lists and maps, including those of older files. A group with only the annotation is a struct.
func (n *node) reshape() {
	if len(n.fields) != 1 || n.fields[0].element.repetition != repeated {
		return
	}
	inner := n.fields[0]
	switch {
	case n.element.ann == annList || n.element.converted == 3:
		n.shape, n.item = shapeList, inner
		if len(inner.fields) == 1 && inner.fields[0].element.repetition != repeated &&
			inner.element.name != "array" && inner.element.name != n.element.name+"_tuple" {
			n.item = inner.fields[0]
		}
	case n.element.ann == annMap || n.element.converted == 1 || n.element.converted == 2:
		if len(inner.fields) == 1 || len(inner.fields) == 2 {
			if key := inner.fields[0]; key.element.repetition != repeated && key.first != nil {
				n.shape, n.item = shapeMap, inner
			}
		}
	}
}

func newLeaf(n *node, path []string, index int) (*leaf, error) {
	l := &leaf{
		index: index, path: strings.Join(path, "."), physical: n.element.physical, length: int(n.element.length),
		maxDef: n.def, maxRep: n.rep,
	}
	if l.physical < physBoolean || l.physical > physFixed {
		return nil, fmt.Errorf("column %s has the unknown %s", l.path, l.physical)
	}
	if l.physical == physFixed && l.length <= 0 {
		return nil, fmt.Errorf("column %s has the invalid value size %d", l.path, l.length)
	}
	if err := l.interpret(&n.element); err != nil {
		return nil, fmt.Errorf("column %s: %w", l.path, err)
	}
	return l, nil
}

// converted maps the ConvertedTypes of older files to annotations.
var converted = map[int32]element{
	0: {ann: annString}, 4: {ann: annEnum}, 5: {ann: annDecimal}, 6: {ann: annDate},
	7: {ann: annTime, unit: record.Millis}, 8: {ann: annTime, unit: record.Micros},
	9: {ann: annTimestamp, unit: record.Millis}, 10: {ann: annTimestamp, unit: record.Micros},
	11: {ann: annInteger, width: 8}, 12: {ann: annInteger, width: 16},
	13: {ann: annInteger, width: 32}, 14: {ann: annInteger, width: 64},
	15: {ann: annInteger, width: 8, signed: true}, 16: {ann: annInteger, width: 16, signed: true},
	17: {ann: annInteger, width: 32, signed: true}, 18: {ann: annInteger, width: 64, signed: true},
	19: {ann: annJSON}, 20: {ann: annBSON}, 21: {ann: annInterval},
}

// interpret sets the kind of a leaf. It refuses annotations that do not fit the type, and ignores unknown ones.
func (l *leaf) interpret(from *element) error {
	e := *from
	if e.ann < annString || e.ann > annFloat16 || e.ann == 9 {
		old := converted[e.converted]
		e.ann, e.unit, e.width, e.signed, e.utc = old.ann, old.unit, old.width, old.signed, true
	}
	l.ann, l.scale, l.unit, l.local = e.ann, e.scale, e.unit, !e.utc
	l.bound(64)
	bytes := l.physical == physByteArray || l.physical == physFixed
	fits := true
	switch e.ann {
	case annString, annEnum, annJSON:
		l.kind, fits = record.String, bytes
	case annBSON:
		l.kind, fits = record.Binary, bytes
	case annUUID:
		l.kind, fits = record.String, l.physical == physFixed && l.length == 16
	case annFloat16:
		l.kind, fits = record.Double, l.physical == physFixed && l.length == 2
	case annInterval:
		l.kind, fits = record.Binary, l.physical == physFixed && l.length == 12
	case annDecimal:
		l.kind, fits = record.Decimal, bytes || l.physical == physInt32 || l.physical == physInt64
		if l.scale > maxScale || l.scale < -maxScale {
			return fmt.Errorf("decimals with a scale of %d are not supported", l.scale)
		}
	case annDate:
		l.kind, fits = record.Date, l.physical == physInt32
	case annTime:
		l.kind = record.TimeOfDay
		fits = l.unit == record.Millis && l.physical == physInt32 || l.unit > record.Millis && l.physical == physInt64
	case annTimestamp:
		l.kind, fits = record.Timestamp, l.unit >= record.Millis && l.physical == physInt64
	case annInteger:
		l.kind, l.unsigned = record.Integer, !e.signed
		if l.unsigned && e.width == 64 {
			l.kind = record.Unsigned
		}
		fits = e.width == 64 && l.physical == physInt64 ||
			(e.width == 8 || e.width == 16 || e.width == 32) && l.physical == physInt32
		l.bound(e.width)
	default: // includes UNKNOWN, for a column of nulls whose type means nothing
		l.plain()
	}
	if !fits {
		return fmt.Errorf("%s does not match its annotation (%d)", l.physical, e.ann)
	}
	return nil
}

// bound sets the range of integers with this many bits. Unsigned 64-bit integers are compared as signed ones.
func (l *leaf) bound(bits int32) {
	l.integers.bits, l.integers.least, l.integers.most = bits, math.MinInt64, math.MaxInt64
	switch {
	case bits <= 0 || bits >= 64:
	case l.unsigned:
		l.integers.least, l.integers.most = 0, 1<<bits-1
	default:
		l.integers.least, l.integers.most = -1<<(bits-1), 1<<(bits-1)-1
	}
}

// maxScale limits the zeros in the text of a decimal. No known program writes more than 76 digits.
const maxScale = 4096

// plain sets the kind of a leaf that has no annotation.
func (l *leaf) plain() {
	switch l.physical {
	case physBoolean:
		l.kind = record.Boolean
	case physInt32, physInt64:
		l.kind = record.Integer
	case physFloat, physDouble:
		l.kind = record.Double
	case physInt96:
		l.kind = record.Timestamp
	default:
		l.kind = record.Binary
	}
}
