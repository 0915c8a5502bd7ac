package convert

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Ragged is a policy for records with more or fewer fields than the header.
type Ragged uint8

const (
	RejectRagged   Ragged = iota
	PadRagged             // missing fields are null; surplus fields are still refused
	TruncateRagged        // surplus fields are dropped; missing fields are still refused
)

type Options struct {
	Nulls       []string // unquoted texts that mean null, in addition to "" without EmptyIsText
	EmptyIsText bool     // an unquoted empty field means an empty string, not null
	QuotedNulls []string // quoted texts that mean null
	Trim        bool     // remove spaces and tabs around unquoted fields
	Ragged      Ragged
	// Decode decodes a field to UTF-8. bad is the offset of the first undecodable byte, or -1. Nil if fields are UTF-8.
	Decode func(dst, src []byte) (out []byte, bad int)
	// EncodingHint returns advice to append to a decoding error. It may be nil.
	EncodingHint func(text []byte) string
	// VersionColumn is the input column that holds the cells' timestamp in milliseconds; "" means none.
	VersionColumn string
	// Missing allows sources without some of the schema's columns. Their rows have no such cells.
	Missing bool
}

// Converter converts the records of a source to typed values in schema order. It is not safe for concurrent use.
type Converter struct {
	o       Options
	columns []table.Column
	index   []int // by column: index of the field in a record
	version int   // index of the field with the timestamp, or -1
	width   int   // number of fields in a record
	asItIs  bool  // fields are neither trimmed nor decoded
	ascii   bool  // whether the record's texts are known to be ASCII
	nulls   [][]byte
	usual   []usual // by column; unusual if options affect texts
	values  []table.Value
	stamps  []int64
	scratch []byte
}

// New matches a source's column names with the schema. Its error names the first column that the source lacks.
func New(names []string, columns []table.Column, o Options) (*Converter, error) {
	place := make(map[string]int, len(names))
	for i, n := range names {
		place[n] = i
	}
	c := &Converter{o: o, columns: columns, width: len(names), version: -1, values: make([]table.Value, len(columns))}
	c.asItIs = !o.Trim && o.Decode == nil
	for _, col := range columns {
		i, ok := place[col.Source]
		if !ok && o.Missing {
			i = missing
		} else if !ok {
			return nil, fmt.Errorf("no column %q", col.Source)
		}
		c.index = append(c.index, i)
	}
	if o.VersionColumn != "" {
		i, ok := place[o.VersionColumn]
		if !ok {
			return nil, fmt.Errorf("no column %q", o.VersionColumn)
		}
		c.version = i
	}
	for _, n := range o.Nulls {
		c.nulls = append(c.nulls, []byte(n))
	}
	for i := range columns {
		c.usual = append(c.usual, c.usualOf(&columns[i]))
	}
	return c, nil
}

// Only limits the conversion of later records to these columns, without timestamps. Other columns become null.
func (c *Converter) Only(columns []int) {
	for i := range c.index {
		if !slices.Contains(columns, i) {
			c.index[i] = unread
		}
	}
	c.version = -1
}

// Indexes of fields that do not exist: of columns that are not read and of columns that the source lacks.
const (
	unread  = math.MaxInt
	missing = unread - 1
)

// Fields returns the indexes of the record fields that are used, in ascending order without duplicates.
func (c *Converter) Fields() []int {
	used := slices.DeleteFunc(slices.Clone(c.index), func(i int) bool { return i >= missing })
	if c.version >= 0 {
		used = append(used, c.version)
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// Convert returns a record's values, or why it is rejected. They are valid until the next call and while rec is valid.
func (c *Converter) Convert(rec *record.Record) ([]table.Value, *table.Reason) {
	if rec.Bad != nil {
		return nil, rec.Bad
	}
	if why := c.o.Ragged.Check(rec, c.width); why != nil {
		return nil, why
	}
	c.scratch, c.ascii = c.scratch[:0], rec.ASCII && c.asItIs
	for i := range c.columns {
		v := &c.values[i]
		if field := c.index[i]; field < len(rec.Fields) && c.usualValue(v, c.usual[i], &rec.Fields[field]) {
			continue
		}
		if why := c.convert(v, &c.columns[i], rec, c.index[i]); why != nil {
			return nil, why
		}
	}
	return c.values, nil
}

// Stamps returns the cells' timestamps in ms, in schema order, negative for none. It returns nil if no cell has one.
func (c *Converter) Stamps(rec *record.Record) ([]int64, *table.Reason) {
	if c.version < 0 && rec.Timestamps == nil {
		return nil, nil
	}
	c.stamps = c.stamps[:0]
	version := int64(-1)
	if c.version >= 0 {
		var why *table.Reason
		if version, why = c.Version(rec); why != nil {
			return nil, why
		}
	}
	for _, field := range c.index {
		at := version
		if version < 0 && field < len(rec.Timestamps) {
			at = rec.Timestamps[field]
		}
		c.stamps = append(c.stamps, at)
	}
	return c.stamps, nil
}

// Version returns the timestamp of the record's cells in milliseconds, or why it has none.
func (c *Converter) Version(rec *record.Record) (int64, *table.Reason) {
	col := table.Column{Name: c.o.VersionColumn, Type: table.Integer}
	var v table.Value
	if why := c.convert(&v, &col, rec, c.version); why != nil {
		return 0, why
	}
	if v.Type == table.Null || v.Int < 0 {
		return 0, &table.Reason{Column: col.Name, Code: table.CodeType,
			Message: "the version is null or negative; want milliseconds since 1970"}
	}
	return v.Int, nil
}

// Check returns why a record's number of fields is refused, or nil if it is width or the policy allows it.
func (r Ragged) Check(rec *record.Record, width int) *table.Reason {
	n := len(rec.Fields) - rec.Short
	if n == width || n > width && r == TruncateRagged || n < width && r == PadRagged {
		return nil
	}
	hint := ""
	if last := len(rec.Fields) - 1; n == width+1 && len(rec.Fields[last].Bytes) == 0 && !rec.Fields[last].Quoted {
		hint = "; the last one is empty: if each record ends with a delimiter, give --ragged truncate"
	}
	return &table.Reason{Code: table.CodeRagged, Message: fmt.Sprintf("%d fields, the header has %d%s", n, width, hint)}
}

// convert converts the value of a column. The reason for a failure names the column and the value.
func (c *Converter) convert(v *table.Value, col *table.Column, rec *record.Record, field int) *table.Reason {
	if field >= len(rec.Fields) {
		*v = table.Value{Absent: field == missing}
		return nil
	}
	d := &rec.Fields[field]
	var text record.Datum
	if d.Kind == record.Text && c.asItIs {
		if c.isNull(d) {
			*v = table.Value{}
			return nil
		}
	} else if d.Kind == record.Text {
		var why *table.Reason
		if text, why = c.text(d); why != nil {
			why.Column, why.Value = col.Name, table.Show(d.Bytes)
			return why
		}
		d = &text
	}
	if d.None() {
		*v = table.Value{Absent: d.Kind == record.Absent}
		return nil
	}
	if why := c.value(v, col, d); why != nil {
		if col.Inferred && d.Kind == record.Text && col.Type != table.String {
			why.Message += fmt.Sprintf("; the sample made the column %s: --type %s=string takes any text", col.Type, col.Name)
		}
		return blame(why, col, d)
	}
	return nil
}

func blame(why *table.Reason, col *table.Column, d *record.Datum) *table.Reason {
	why.Column, why.Value = col.Name, show(d)
	return why
}

// Cell converts a typed datum, or returns why it is refused. The value is valid until the next call of Convert.
func (c *Converter) Cell(v *table.Value, col *table.Column, d *record.Datum) *table.Reason {
	if why := c.value(v, col, d); why != nil {
		return blame(why, col, d)
	}
	return nil
}

// text applies the options for untyped fields: trimming, nulls and decoding.
func (c *Converter) text(d *record.Datum) (record.Datum, *table.Reason) {
	t := *d
	if c.o.Trim && !t.Quoted {
		t.Bytes = bytes.Trim(t.Bytes, " \t")
	}
	if c.isNull(&t) {
		return record.Datum{}, nil
	}
	if c.o.Decode != nil {
		from := len(c.scratch)
		var bad int
		if c.scratch, bad = c.o.Decode(c.scratch, t.Bytes); bad >= 0 {
			return t, &table.Reason{Code: table.CodeUTF8, Message: fmt.Sprintf(
				"byte %d of the field is not in the file's encoding%s", bad, c.looks(t.Bytes))}
		}
		t.Bytes = c.scratch[from:len(c.scratch):len(c.scratch)]
	}
	return t, nil
}

func (c *Converter) looks(text []byte) string {
	if c.o.EncodingHint == nil {
		return ""
	}
	return c.o.EncodingHint(text)
}

func (c *Converter) isNull(d *record.Datum) bool {
	if d.Quoted {
		return slices.Contains(c.o.QuotedNulls, string(d.Bytes))
	}
	if len(d.Bytes) == 0 {
		return !c.o.EmptyIsText
	}
	return slices.ContainsFunc(c.nulls, func(null []byte) bool { return bytes.Equal(d.Bytes, null) })
}

// Value converts a datum, but not an untyped text, to a value of a column, or returns why it is refused.
func Value(col *table.Column, d *record.Datum) (table.Value, *table.Reason) {
	var v table.Value
	if d.None() {
		v.Absent = d.Kind == record.Absent
		return v, nil
	}
	var c Converter
	why := c.value(&v, col, d)
	return v, why
}

func (c *Converter) value(v *table.Value, col *table.Column, d *record.Datum) *table.Reason {
	if col.Time != nil {
		return timestampValue(v, col.Time, d)
	}
	if col.Own != table.Null && col.Type != table.Any && d.Kind != record.Text && !ownFits(col.Own, d) {
		return wrong("%s in a column of %s; --type %s=string makes text of all its values, and --type %s=any, which a "+
			"primary key cannot have, leaves each its type",
			kindOf(d), owns[col.Own], col.Name, col.Name)
	}
	switch col.Type {
	case table.String:
		if col.Inferred && d.Tagged {
			return wrong(`the object {"base64": "…"} is a binary value; give --type %[1]s=binary, or --type %[1]s=string for `+
				"its text", col.Name)
		}
		return c.stringValue(v, d)
	case table.Integer:
		if d.Kind == record.Timestamp && col.Unit != "" && !strings.HasSuffix(col.Unit, ", "+unitNames[d.Unit]) { // INT96
			return outOfRange("the time does not fit in 64 bits of the column's unit: " + col.Unit)
		}
		return integerValue(v, d, col.Exact)
	case table.Double:
		why := c.doubleValue(v, d, col.Exact)
		if why != nil && why.Code == table.CodeNotCanonical && col.Zeros && PlainNumber(d.Bytes) {
			return c.doubleValue(v, d, false)
		}
		return why
	case table.Boolean:
		return booleanValue(v, d, col.Exact)
	case table.Binary:
		return c.binaryValue(v, d, col.Hex)
	case table.Any:
		own := table.Column{Type: Natural(d), Inferred: col.Inferred}
		if d.Kind == record.Text && col.Own != table.Null && col.Own != table.Any {
			own.Type, own.Exact = col.Own, true // all texts in the sample have this type
		}
		return c.value(v, &own, d)
	}
	panic("convert: column of type " + col.Type.String())
}

// Natural returns the type of a datum without --type. A number that is neither an integer nor a double is a string.
func Natural(d *record.Datum) table.Type {
	switch d.Kind {
	case record.Integer:
		return table.Integer
	case record.Unsigned:
		if d.Int < 0 {
			return table.String
		}
		return table.Integer
	case record.Number:
		return naturalNumber(d.Bytes)
	case record.Double:
		return table.Double
	case record.Boolean:
		return table.Boolean
	case record.Binary:
		return table.Binary
	case record.JSON:
		if d.Tagged {
			return table.Binary
		}
	}
	return table.String
}

func naturalNumber(text []byte) table.Type {
	var v table.Value
	if !integral(text) || string(text) == "-0" { // an integer 0 would lose the sign
		var c Converter
		if c.parseDouble(&v, text, false) != nil {
			return table.String
		}
		return table.Double
	}
	if parseInteger(&v, text, false) != nil {
		return table.String
	}
	return table.Integer
}

const maxShown = 4 << 10

func show(d *record.Datum) string {
	short := *d
	if d.Kind != record.Decimal && len(d.Bytes) > maxShown {
		short.Bytes = d.Bytes[:maxShown]
	}
	return table.Show(appendText(nil, &short))
}
