package filter

import "example.com/tsimport/engine/wire"

const (
	typeSingle, typeComposite, typePagination = 1, 2, 3
	combineNot, combineAnd, combineOr         = 1, 2, 3
)

// Decode decodes the filter of a read. It returns nil if b is empty.
func Decode(b []byte) (*Filter, *wire.Error) {
	if len(b) == 0 {
		return nil, nil
	}
	var d decoder
	typ, body, err := d.envelope(b)
	if err != nil {
		return nil, err
	}
	f := &Filter{}
	if typ == typePagination {
		f.page, err = decodePage(body)
	} else {
		f.root, err = d.node(typ, body)
	}
	if err == nil {
		err = d.shape
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// DecodeCondition decodes the column condition of a write, which is a filter without paging.
func DecodeCondition(b []byte) (*Filter, *wire.Error) {
	f, err := Decode(b)
	if err == nil && f != nil && f.page != nil {
		return nil, wire.Invalid("Invalid condition: ColumnPaginationFilter cannot be given as a column condition.")
	}
	return f, err
}

func broken() *wire.Error { return wire.Invalid("Deserialize filter failed.") }

// decoder counts nodes before it descends into them, so that MaxNodes also limits the depth of the recursion.
type decoder struct {
	nodes       int
	expressions int // instructions of all regular expressions so far

	shape *wire.Error // error of the first operator with a wrong number of parts; too many nodes take precedence
}

func (d *decoder) envelope(b []byte) (typ uint64, body []byte, err *wire.Error) {
	if d.nodes++; d.nodes > MaxNodes {
		return 0, nil, wire.Invalid("The count of filter exceeds the max: %d.", MaxNodes)
	}
	if wire.ReadFields(b, 2, &typ, &body) != nil {
		return 0, nil, broken()
	}
	return typ, body, nil
}

func (d *decoder) node(typ uint64, body []byte) (node, *wire.Error) {
	switch typ {
	case typeSingle:
		return d.single(body)
	case typeComposite:
		return d.composite(body)
	case typePagination:
		return nil, wire.Invalid("ColumnPaginationFilter cannot be given inside CompositeColumnValueFilter.")
	}
	return nil, broken()
}

func (d *decoder) composite(b []byte) (node, *wire.Error) {
	var combinator uint64
	var subs []node
	var err *wire.Error
	malformed := wire.ReadFields(b, 1, &combinator, func(b []byte) *wire.Error {
		var typ uint64
		var body []byte
		var sub node
		if typ, body, err = d.envelope(b); err == nil {
			sub, err = d.node(typ, body)
		}
		subs = append(subs, sub)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case malformed != nil || combinator < combineNot || combinator > combineOr:
		return nil, broken()
	case combinator == combineNot && len(subs) != 1:
		d.misshapen("Invalid NOT operator: the number of sub-filters must be 1.")
		return not{}, nil
	case combinator == combineNot:
		return not{subs[0]}, nil
	case len(subs) < 2:
		d.misshapen("Invalid AND/OR operator: the number of sub-filters must be more than 1.")
		return every(nil), nil
	case combinator == combineAnd:
		return every(subs), nil
	}
	return some(subs), nil
}

func (d *decoder) misshapen(says string) {
	if d.shape == nil {
		d.shape = wire.Invalid("%s", says)
	}
}

func (d *decoder) single(b []byte) (node, *wire.Error) {
	s := &single{}
	var how uint64
	var value []byte
	var filterIfMissing bool
	var err *wire.Error
	malformed := wire.ReadFields(b, 5, &how, &s.column, &value, &filterIfMissing, &s.latest, func(b []byte) *wire.Error {
		s.rule, err = d.rule(b)
		return err
	})
	s.comparator, s.missing = comparator(how), !filterIfMissing
	switch {
	case malformed != err || how < uint64(equal) || how > uint64(existsNot):
		return nil, broken()
	case err != nil:
		return nil, err
	case !wire.ValidColumnName(s.column):
		return nil, wire.Invalid("Invalid column name: '%s'.", s.column)
	}
	typ, payload, rest, ok := wire.ReadVariant(value)
	if !ok || len(rest) > 0 {
		return nil, broken()
	}
	s.value = wire.Cell{Name: s.column, Type: typ, Value: payload}
	return s, wire.CheckValue(&s.value)
}

func (d *decoder) rule(b []byte) (*rule, *wire.Error) {
	var regex []byte
	cast := uint64(wire.Integer) // the default of cast_type
	if wire.ReadFields(b, 1, &regex, &cast) != nil || cast > uint64(wire.Binary) {
		return nil, broken()
	}
	r, err := newRule(MaxRegexSize-d.expressions, regex, wire.ValueType(cast))
	if err != nil {
		return nil, err
	}
	d.expressions += r.size
	return r, nil
}

func decodePage(b []byte) (*page, *wire.Error) {
	var offset, limit wire.Optional[int32]
	switch {
	case wire.ReadFields(b, 2, &offset, &limit) != nil:
		return nil, broken()
	case offset.Value < 0:
		return nil, wire.Invalid("Offset in ColumnPaginationFilter must be greater than or equal to 0.")
	case limit.Value <= 0:
		return nil, wire.Invalid("Limit in ColumnPaginationFilter must be greater than 0.")
	}
	return &page{int(offset.Value), int(limit.Value)}, nil
}
