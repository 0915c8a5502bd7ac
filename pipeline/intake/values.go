package intake

import (
	"encoding/binary"
	"math"
	"slices"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

// values makes the values of rows from one source's records. Input becomes table values only here: earlier stages do
// not know the schema, and later ones see only rows.
type values struct {
	converter *convert.Converter
	keys      int // number of primary-key columns, which come first
	ordering  int // number of ordering-key columns
	keyFields []int
	last      []table.Value // fields of the last record

	makers     []plan.Maker // nil if the converter makes the rows
	evaluators []*keyexpr.Evaluator
	row        []table.Value
	times      []int64
	namer      *plan.Namer // nil if all rows go to one table
	versioned  bool        // all cells of a row have the same timestamp
}

func newValues(p *plan.Plan, s *plan.Source) (*values, error) {
	c, err := p.Converter(s)
	if err != nil {
		return nil, err
	}
	v := &values{
		converter: c, keys: len(p.Schema.Key), ordering: len(p.Schema.Ordering()), makers: p.Makers, keyFields: p.KeyFields(),
		versioned: p.Request.Read.Convert.VersionColumn != "",
	}
	v.row, v.evaluators = make([]table.Value, len(p.Makers)), make([]*keyexpr.Evaluator, len(p.Makers))
	if p.Tables != nil {
		v.namer = p.Tables.NewNamer()
	}
	for i, m := range p.Makers {
		if m.Program != nil {
			v.evaluators[i] = m.Program.NewEvaluator()
		}
	}
	return v, nil
}

// rowOf is the content of a row made from a record. It is valid as long as the record, until the next one.
type rowOf struct {
	row      []table.Value // values by the schema's columns
	stamps   []int64       // timestamps as the encoder takes them
	table    []byte        // name of the table; nil if all rows go to one
	archived bool          // it goes to the archive instead of a table
}

// of makes a row of a record, or returns why the record makes none.
func (v *values) of(rec *record.Record) (of rowOf, why *table.Reason) {
	if of.row, why = v.rowValues(rec); why != nil {
		return of, why
	}
	if v.namer != nil {
		if of.table, of.archived, why = v.namer.Of(v.last); why != nil || of.archived {
			return of, why
		}
	}
	of.stamps, why = v.stamps(rec)
	return of, why
}

// rowValues returns the values of the record's row by column, valid until the next call, or why there is no row.
func (v *values) rowValues(rec *record.Record) ([]table.Value, *table.Reason) {
	fields, why := v.converter.Convert(rec)
	v.last = fields
	if why != nil || v.makers == nil {
		return fields, why
	}
	for i, m := range v.makers {
		switch {
		case m.Program == nil && m.Field < 0:
			v.row[i] = table.Value{}
		case m.Program == nil:
			v.row[i] = fields[m.Field]
		case i < v.keys:
			v.row[i], why = m.Program.KeyValue(v.evaluators[i], fields, i == 0)
		default:
			v.row[i], why = v.evaluators[i].Eval(fields)
			v.row[i].Absent = false // computed columns are in every record
		}
		if why != nil {
			return nil, why
		}
	}
	return v.row, nil
}

// appendKeyFields appends the fields that made the last row's key. Bytes are equal exactly if the fields' values are.
func (v *values) appendKeyFields(dst []byte) []byte {
	for _, i := range v.keyFields {
		value := v.last[i]
		dst = append(dst, byte(value.Type))
		switch value.Type {
		case table.Null:
		case table.Double:
			dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(value.Double))
		case table.String, table.Binary:
			dst = table.AppendKey(dst, value)
		default:
			dst = binary.BigEndian.AppendUint64(dst, uint64(value.Int))
		}
	}
	return dst
}

// stamps returns the cells' timestamps by column. A computed cell has that of the row, or the service's time.
func (v *values) stamps(rec *record.Record) ([]int64, *table.Reason) {
	fields, why := v.converter.Stamps(rec)
	if why != nil || fields == nil || v.makers == nil {
		return fields, why
	}
	v.times = v.times[:0]
	for _, m := range v.makers {
		at := int64(-1)
		if m.Program == nil && m.Field >= 0 {
			at = fields[m.Field]
		} else if m.Program != nil && v.versioned && len(fields) > 0 {
			at = fields[0]
		}
		v.times = append(v.times, at)
	}
	return v.times, nil
}

// keysOnly makes rowValues leave columns that are not used in ordering keys null.
func (v *values) keysOnly() {
	if v.namer != nil {
		return
	}
	if v.makers == nil {
		fields := make([]int, v.ordering)
		for i := range fields {
			fields[i] = i
		}
		v.converter.Only(fields)
		return
	}
	fields := slices.Clone(v.keyFields)
	for _, m := range v.makers[:v.ordering] {
		if m.Program == nil && m.Field >= 0 {
			fields = append(fields, m.Field)
		}
	}
	v.converter.Only(fields)
	v.makers = slices.Clone(v.makers)
	for i := v.ordering; i < len(v.makers); i++ {
		v.makers[i] = plan.Maker{Field: -1}
	}
}

// appendKey appends the ordering key of the record's row, or returns nil if the record makes no row.
func (v *values) appendKey(key []byte, rec *record.Record) []byte {
	row, why := v.rowValues(rec)
	if why != nil {
		return nil
	}
	if v.namer != nil {
		name, _, why := v.namer.Of(v.last)
		if why != nil {
			return nil
		}
		key = table.AppendTable(key, string(name))
	}
	for _, value := range row[:v.ordering] {
		if value.Type == table.Null {
			return nil
		}
		key = table.AppendKey(key, value)
	}
	return key
}
