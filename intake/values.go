package intake

import (
	"fmt"

	"tsimport/plan"
	"tsimport/reader/convert"
	"tsimport/reader/record"
	"tsimport/table"
)

// values makes the values of rows out of the records of one source. It is the one place where what stands in the input
// becomes what the table gets: behind it there are rows only, and before it nobody knows the schema. A column that is
// computed from others belongs here: its inputs among fields, its value into what of returns.
type values struct {
	converter *convert.Converter
	keys      int // columns of the primary key, which come first
}

func newValues(p *plan.Plan, s *plan.Source) (*values, error) {
	options := p.Request.Read.Convert
	options.Decode = s.Decode()
	c, err := convert.New(s.Columns, p.Schema.Columns, options)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, err)
	}
	return &values{converter: c, keys: len(p.Schema.Key)}, nil
}

// fields returns the fields of the source's records that are looked at, in ascending order: the others need not be read.
func (v *values) fields() []int { return v.converter.Fields() }

// of returns the values of the record's row by the schema's columns, or why it makes none. They are valid until the next
// call, and as long as the record is.
func (v *values) of(rec *record.Record) ([]table.Value, *table.Reason) {
	return v.converter.Convert(rec)
}

// stamps returns the timestamps of the row's cells by the schema's columns, as the encoder takes them.
func (v *values) stamps(rec *record.Record) ([]int64, *table.Reason) { return v.converter.Stamps(rec) }

// key returns the ordering key of the record's row, nil when it makes none.
func (v *values) key(rec *record.Record) []byte {
	row, why := v.of(rec)
	if why != nil {
		return nil
	}
	var key []byte
	for _, value := range row[:v.keys] {
		if value.Type == table.Null {
			return nil
		}
		key = table.AppendKey(key, value)
	}
	return key
}
