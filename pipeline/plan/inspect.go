package plan

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Inspection describes an input. Its many fields form the JSON output.
type Inspection struct {
	Path        string            `json:"path"`
	Error       string            `json:"error,omitempty"` // why it could not be read completely
	Format      string            `json:"format"`
	Compression string            `json:"compression"`
	Encoding    string            `json:"encoding"`          // encoding of text
	Dialect     string            `json:"dialect,omitempty"` // dialect of CSV
	Notes       []string          `json:"notes,omitempty"`   // how the dialect was detected
	Hint        string            `json:"hint,omitempty"`    // possible faults of the columns
	Header      bool              `json:"header"`            // the first record names the columns
	Bytes       int64             `json:"bytes"`             // -1 means unknown
	Rows        int64             `json:"rows"`              // number of records, including rejected ones
	Exact       bool              `json:"exact"`             // Rows was counted or is stated by the file
	Looked      int64             `json:"looked"`            // number of inspected records
	Rejected    int64             `json:"rejected"`          // number of unreadable records
	FirstReject string            `json:"first_reject,omitempty"`
	Splits      int               `json:"splits"`
	Columns     []InspectedColumn `json:"columns"`
	Decisions   []Decision        `json:"decisions,omitempty"` // decisions that some values contradict
	Together    []Decision        `json:"together,omitempty"`  // differences of several inputs, in the last one

	found []source.Found
}

// InspectedColumn describes a column, judging by the inspected records.
type InspectedColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Unit    string `json:"unit,omitempty"` // unit of the values, from a schema: "timestamp, µs"
	Nulls   int64  `json:"nulls"`
	Min     string `json:"min"` // least value: by number if there are numbers, otherwise by bytes
	Max     string `json:"max"`
	Longest int    `json:"longest"` // bytes of the longest value's text
	Example string `json:"example"`
}

// inspectBytes is how many bytes of an input are inspected if records are not counted.
const inspectBytes = 4 << 20

// Inspect inspects inputs' beginnings or, with count, every record. It also returns the last unreadable input's error.
func Inspect(ctx context.Context, args []string, r Read, count bool) ([]Inspection, error) {
	find := r.Find
	if r.Stdin != nil {
		find.Stdin = input.Stoppable(ctx, r.Stdin)
	}
	set, err := input.Expand(ctx, args, find)
	if err != nil {
		return nil, err
	}
	var found []Inspection
	var last error
	for _, item := range set.Items {
		in, err := inspectOne(ctx, item, r, count)
		if len(found) == 0 {
			in.Notes = append(set.Warnings, in.Notes...)
		}
		if err != nil {
			in.Error = client.OneLine(err.Error())
			last = err
		}
		found = append(found, in)
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
	}
	if len(found) > 1 {
		found[len(found)-1].Together = together(found)
	}
	return found, last
}

// inspector collects the properties of one input's records.
type inspector struct {
	in        Inspection
	names     []string // names of the input's columns
	seen      int64    // bytes inspected
	inference *convert.Inference
	columns   []columnRange
	measures  []record.Measures
	options   convert.Options
}

func inspectOne(ctx context.Context, item input.Item, r Read, count bool) (Inspection, error) {
	in := Inspection{Path: item.Name, Bytes: item.Size, Columns: []InspectedColumn{}}
	options := r.Options
	options.Stream = func(from io.Reader) io.Reader { return input.Stoppable(ctx, from) }
	s, err := reader.Open(ctx, item, options)
	if warning, ok := reader.Skips(item, err); ok {
		in.Notes = []string{warning}
		return in, nil
	}
	if err != nil {
		return in, cannotLoad(ctx, err)
	}
	defer s.Close()
	i := &inspector{in: in, options: r.Convert}
	i.describe(s, options)
	err = i.read(s, count)
	if rows, stated := s.Rows(); stated {
		i.in.Rows, i.in.Exact = rows, true
	} else if seen := i.seen; !i.in.Exact && i.in.Bytes > 0 && seen > 0 && i.in.Compression == "none" {
		i.in.Rows = int64(float64(i.in.Rows) * float64(i.in.Bytes) / float64(seen))
		i.in.Splits = int(i.in.Bytes/int64(s.SplitBytes())) + 1
	}
	i.finish()
	return i.in, err
}

// InspectTable inspects a table of a database: its first rows or, if count is set, every row.
func InspectTable(ctx context.Context, name string, from source.Origin, r Read, count bool) (Inspection, error) {
	in := Inspection{Path: name, Bytes: -1, Format: "table", Compression: "none", Columns: []InspectedColumn{}}
	division, err := from.Divide(ctx)
	var parts []source.Source
	if err == nil {
		parts, err = from.Open(ctx, division)
	}
	if err != nil {
		return in, cannotLoad(ctx, err)
	}
	defer func() {
		for _, s := range parts {
			_ = s.Close() // it was only read
		}
	}()
	i := &inspector{in: in, options: r.Convert}
	i.begin(parts[0].About().Columns)
	for k, s := range parts {
		if err = i.read(s, count); err != nil || !i.in.Exact {
			break
		}
		i.in.Exact = k == len(parts)-1
		if !count && i.seen >= inspectBytes {
			break
		}
	}
	i.finish()
	return i.in, err
}

func (i *inspector) describe(s *reader.File, o reader.Options) {
	about := s.About()
	i.in.Compression = s.Compression.String()
	for _, f := range about.Found {
		switch f.What {
		case "format":
			i.in.Format = f.As
		case "encoding":
			i.in.Encoding = f.As
		case "dialect":
			i.in.Dialect, i.in.Header = f.As, !o.NoHeader
		}
	}
	i.in.Notes, i.in.Hint, i.in.found, i.measures = s.Notes, s.Hint, about.Found, about.Measures
	i.options.Decode = s.Decode()
	i.options.EncodingHint = s.EncodingHint
	i.begin(s.Columns)
}

func (i *inspector) begin(columns []string) {
	i.names = columns
	i.inference = convert.NewInference(len(columns), i.options)
	i.columns = make([]columnRange, len(columns))
}

// read inspects the records: only those at the beginning, unless count is set.
func (i *inspector) read(from source.Source, count bool) error {
	used := make([]int, len(i.names))
	for k := range used {
		used[k] = k
	}
	parser := from.NewParser(used)
	defer parser.Close()
	giveBack := from.About().GiveBack
	parse := func(splits []source.Split) error {
		for _, sp := range splits {
			i.in.Splits++
			i.seen += sp.Bytes
			n, _, err := parser.Parse(sp, i.add)
			i.in.Rows += int64(n)
			if err != nil {
				return err
			}
			if giveBack != nil { // nothing refers to its memory any more
				giveBack(sp)
			}
		}
		return nil
	}
	i.in.Exact = false
	for count || i.seen < inspectBytes {
		p, err := from.Next()
		if errors.Is(err, io.EOF) {
			i.in.Exact = true
			splits, err := from.Finish()
			return errors.Join(parse(splits), err)
		}
		if err != nil {
			return errors.Join(parse(from.Whole()), err)
		}
		prepareErr := p.Prepare()
		splits, err := from.Add(p)
		if err := errors.Join(prepareErr, parse(splits), err); err != nil {
			return errors.Join(parse(from.Whole()), err)
		}
	}
	return nil
}

func (i *inspector) add(rec *record.Record) {
	i.in.Looked++
	bad := rec.Bad
	if bad == nil {
		bad = i.options.Ragged.Check(rec, len(i.names))
	}
	if bad != nil {
		i.reject(bad)
		return
	}
	field, bad := i.inference.Texts(rec)
	if bad != nil {
		if field < len(i.names) {
			bad.Column = i.names[field]
		}
		i.reject(bad)
		return
	}
	for k := range min(len(rec.Fields), len(i.columns)) {
		if d, n, isNumber := i.inference.AddField(k, rec); d == nil {
			i.columns[k].nulls++
		} else {
			i.columns[k].add(d, n, isNumber)
		}
	}
}

func (i *inspector) reject(why *table.Reason) {
	i.in.Rejected++
	if i.in.FirstReject == "" {
		i.in.FirstReject = client.OneLine(why.Error())
	}
}

func (i *inspector) finish() {
	for k, name := range i.names {
		c := &i.columns[k]
		t := i.inference.Type(k)
		if d, ok := numbers(i.inference, k, name, t); ok {
			i.in.Decisions = append(i.in.Decisions, d)
		} else if few, nearly := i.inference.Minority(k, false); nearly {
			i.in.Decisions = append(i.in.Decisions, dispute(name, t, few))
		}
		low, high := c.low, c.high
		if (t == table.Integer || t == table.Double) && c.numbers {
			low, high = c.lowNumber, c.highNumber
		}
		unit := ""
		if k < len(i.measures) {
			unit = convert.Measure(i.measures[k][""])
		}
		i.in.Columns = append(i.in.Columns, InspectedColumn{
			Name: name, Type: t.String(), Unit: unit, Nulls: c.nulls, Longest: c.longest, Example: table.Show(c.example),
			Min: table.Show(low), Max: table.Show(high),
		})
	}
}

// shownBytes is how many bytes of a value are kept, one more than are shown, to tell that there are more. So the least
// and the greatest value may be uncertain, but not the parts of them that are shown.
const shownBytes = table.MaxShownBytes + 1

// text returns the text of a value. It is valid until the next call.
func (c *columnRange) text(d *record.Datum) []byte {
	switch d.Kind {
	case record.Text, record.Number, record.String, record.JSON:
		return d.Bytes
	}
	c.scratch = append(c.scratch[:0], convert.Text(d)...)
	return c.scratch
}

// columnRange describes a column's values.
type columnRange struct {
	nulls      int64
	longest    int
	lowHead    uint64 // head of low
	highHead   uint64
	min, max   float64
	numbers    bool // a number was seen
	example    []byte
	low, high  []byte // least and greatest values by bytes
	lowNumber  []byte // text of min; highNumber is that of max
	highNumber []byte
	scratch    []byte
}

// head returns the first eight bytes of a text as a number that sorts as the text does. Missing bytes count as zeros.
func head(text []byte) uint64 {
	if cap(text) >= 8 {
		return binary.BigEndian.Uint64(text[:8]) &^ (math.MaxUint64 >> (8 * min(len(text), 8)))
	}
	var short [8]byte
	copy(short[:], text)
	return binary.BigEndian.Uint64(short[:])
}

func (c *columnRange) add(d *record.Datum, n float64, isNumber bool) {
	text := c.text(d)
	c.longest = max(c.longest, len(text))
	text = text[:min(len(text), shownBytes)]
	h := head(text)
	if c.example == nil {
		c.example, c.low, c.high = bytes.Clone(text), bytes.Clone(text), bytes.Clone(text)
		c.lowHead, c.highHead = h, h
	}
	if h <= c.lowHead && (h < c.lowHead || bytes.Compare(text, c.low) < 0) {
		c.low, c.lowHead = append(c.low[:0], text...), h
	}
	if h >= c.highHead && (h > c.highHead || bytes.Compare(text, c.high) > 0) {
		c.high, c.highHead = append(c.high[:0], text...), h
	}
	if !isNumber {
		return
	}
	if !c.numbers || n < c.min || n == c.min && lessInteger(n, text, c.lowNumber) {
		c.min, c.lowNumber = n, append(c.lowNumber[:0], text...)
	}
	if !c.numbers || n > c.max || n == c.max && lessInteger(n, c.highNumber, text) {
		c.max, c.highNumber = n, append(c.highNumber[:0], text...)
	}
	c.numbers = true
}

// lessInteger reports whether a is less than b, if both are texts of integers with the same nearest double.
func lessInteger(near float64, a, b []byte) bool {
	if math.Abs(near) < 1<<53 {
		return false // equal
	}
	x, err := strconv.ParseInt(string(a), 10, 64)
	y, err2 := strconv.ParseInt(string(b), 10, 64)
	return err == nil && err2 == nil && x < y
}
