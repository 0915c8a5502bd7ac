package wire

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

func appendBytes(dst []byte, id protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, id, protowire.BytesType), b)
}

func appendText(dst []byte, id protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, id, protowire.BytesType), s)
}

func appendInt(dst []byte, id protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.VarintType), uint64(v))
}

// AppendError appends the body of a refused request.
func AppendError(dst []byte, e *Error) []byte {
	return appendText(appendText(dst, 1, e.Code), 2, strings.ToValidUTF8(e.Message, "\ufffd")) // it may quote the request
}

// Capacity holds the capacity units used by an operation. Both are always sent, because SDKs expect them.
type Capacity struct{ Read, Write int32 }

func (c Capacity) appendUnit(dst []byte) []byte {
	return appendInt(appendInt(dst, 1, int64(c.Read)), 2, int64(c.Write))
}

func (c Capacity) append(dst []byte, id protowire.Number) []byte {
	size := 2 + protowire.SizeVarint(uint64(c.Read)) + protowire.SizeVarint(uint64(c.Write))
	dst = protowire.AppendTag(dst, id, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(2+size)) // the message is shorter than 128 bytes
	dst = protowire.AppendTag(dst, 1, protowire.BytesType)
	return c.appendUnit(protowire.AppendVarint(dst, uint64(size)))
}

// Outcome is the result of one row: an error, or the units used and the row to return (PlainBuffer).
type Outcome struct {
	Err      *Error
	Consumed Capacity
	Row      []byte
}

// AppendWrite appends the body of an answer to PutRow, UpdateRow or DeleteRow.
func AppendWrite(dst []byte, o *Outcome) []byte {
	dst = o.Consumed.append(dst, 1)
	if len(o.Row) > 0 {
		dst = appendBytes(dst, 2, o.Row)
	}
	return dst
}

// AppendGetRow appends the body of an answer to GetRow. The field row is always present; empty means no row.
func AppendGetRow(dst []byte, o *Outcome) []byte {
	return appendBytes(o.Consumed.append(dst, 1), 2, o.Row)
}

// TableOutcomes is one table's part of a batch answer.
type TableOutcomes struct {
	Name     []byte
	Outcomes []Outcome
}

// AppendBatch appends the body of an answer to BatchWriteRow or BatchGetRow. emptyRows must be set for BatchGetRow.
func AppendBatch(dst []byte, tables []TableOutcomes, emptyRows bool) []byte {
	var body, row []byte
	for i := range tables {
		t := &tables[i]
		body = appendBytes(slices.Grow(body[:0], 64+16*len(t.Outcomes)), 1, t.Name)
		for j := range t.Outcomes {
			row = appendOutcome(row[:0], &t.Outcomes[j], emptyRows)
			body = appendBytes(body, 2, row)
		}
		dst = appendBytes(dst, 1, body)
	}
	return dst
}

func appendOutcome(dst []byte, o *Outcome, emptyRows bool) []byte {
	if o.Err != nil {
		dst = appendInt(dst, 1, 0)
		dst = appendBytes(dst, 2, AppendError(nil, o.Err))
		if c := failedUnits(o.Err, emptyRows); c != (Capacity{}) {
			dst = c.append(dst, 3)
		}
		return dst
	}
	dst = appendInt(dst, 1, 1)
	dst = o.Consumed.append(dst, 3)
	if emptyRows || len(o.Row) > 0 {
		dst = appendBytes(dst, 4, o.Row)
	}
	return dst
}

// failedUnits returns the capacity used by a refused row of a batch: none if the server or its capacity is the cause.
func failedUnits(e *Error, read bool) Capacity {
	switch {
	case e.Code == CodeConditionCheckFail:
		return Capacity{Read: 1, Write: 1}
	case e.Status >= http.StatusInternalServerError, e.Code == CodeNotEnoughCapacityUnit,
		e.Code == CodeCapacityUnitExhausted:
		return Capacity{}
	case read:
		return Capacity{Read: 1}
	}
	return Capacity{Write: 1}
}

// Around returns the parts before and after the rows in the body of an answer to GetRange or BulkExport. before has at
// most 32 bytes. next is empty at the end of the range. A BulkExport reports the bytes scanned instead of units.
func (r *GetRange) Around(c Capacity, scanned, rows int, next []byte) (before, after []byte) {
	before = make([]byte, 0, 32)
	if r.bulk {
		before = appendBulkUnits(before, 1, scanned, 0)
	} else {
		before = c.append(before, 1)
	}
	before = protowire.AppendVarint(protowire.AppendTag(before, 2, protowire.BytesType), uint64(rows))
	if len(next) > 0 {
		after = appendBytes(nil, 3, next)
	}
	switch {
	case r.bulk:
		after = appendInt(after, 4, int64(r.Block))
	case r.Block != PlainBuffer:
		after = appendInt(after, 5, int64(r.Block))
	}
	return before, after
}

// TableDescription is the answer to DescribeTable and UpdateTable.
type TableDescription struct {
	Name         string
	Key          []KeyColumn
	Defined      []DefinedColumn
	Reserved     Capacity
	LastIncrease int64 // Unix seconds
	LastDecrease int64 // Unix seconds; 0 means never
	TTL          int32
	MaxVersions  int32
	Deviation    int64
	AllowUpdate  bool
	FullRow      bool     // an update replaces the row
	Bounds       []Cell   // bounds between the partitions at creation
	Splits       [][]byte // PlainBuffer rows with only the partition key
	Created      int64    // Unix microseconds
	Indexes      int      // number of simulated indexes, besides IndexMetas
	IndexMetas   []IndexMeta
	Stream       StreamSpec // as last requested
}

func appendKeySchema(dst []byte, id protowire.Number, key []KeyColumn) []byte {
	for _, c := range key {
		b := appendInt(appendText(nil, 1, c.Name), 2, int64(c.Type))
		if c.AutoIncrement {
			b = appendInt(b, 3, 1)
		}
		dst = appendBytes(dst, id, b)
	}
	return dst
}

func (d *TableDescription) throughput() []byte {
	b := appendBytes(nil, 1, d.Reserved.appendUnit(nil))
	b = appendInt(b, 2, d.LastIncrease)
	if d.LastDecrease != 0 {
		b = appendInt(b, 3, d.LastDecrease)
	}
	return b
}

func (d *TableDescription) options() []byte {
	b := appendInt(nil, 1, int64(d.TTL))
	b = appendInt(b, 2, int64(d.MaxVersions))
	b = appendInt(b, 5, d.Deviation)
	// The SDKs for Java, Node and PHP read both without checking that they are present.
	b = appendInt(b, 6, flag(d.AllowUpdate))
	return appendInt(b, 7, flag(d.FullRow))
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stream returns StreamDetails. It is sent even without a stream, because the Go SDK dereferences it unchecked.
func (d *TableDescription) stream() []byte {
	b := appendInt(nil, 1, flag(d.Stream.Enable))
	if !d.Stream.Enable {
		return b
	}
	b = appendText(b, 2, fmt.Sprintf("%s_%d", d.Name, d.Created))
	b = appendInt(b, 3, int64(d.Stream.Hours.Or(24)))
	b = appendInt(b, 4, d.Created)
	for _, name := range d.Stream.Columns {
		b = appendText(b, 5, name)
	}
	return b
}

func AppendDescribeTable(dst []byte, d *TableDescription) []byte {
	meta := appendKeySchema(appendText(nil, 1, d.Name), 2, d.Key)
	for _, c := range d.Defined {
		meta = appendBytes(meta, 3, appendInt(appendText(nil, 1, c.Name), 2, int64(c.Type)))
	}
	const statusActive = 1
	dst = appendBytes(dst, 1, meta)
	dst = appendBytes(dst, 2, d.throughput())
	dst = appendBytes(dst, 3, d.options())
	dst = appendInt(dst, 4, statusActive)
	dst = appendBytes(dst, 5, d.stream())
	for _, s := range d.Splits {
		dst = appendBytes(dst, 6, s)
	}
	for i := range d.Indexes {
		simulated := IndexMeta{Name: fmt.Sprintf("%s_index%d", d.Name, i+1)}
		for _, c := range d.Key {
			simulated.Key = append(simulated.Key, c.Name)
		}
		dst = appendIndex(dst, &simulated)
	}
	for i := range d.IndexMetas {
		dst = appendIndex(dst, &d.IndexMetas[i])
	}
	if d.Created != 0 {
		dst = appendInt(dst, 9, d.Created)
	}
	return dst
}

func AppendUpdateTable(dst []byte, d *TableDescription) []byte {
	dst = appendBytes(dst, 1, d.throughput())
	dst = appendBytes(dst, 2, d.options())
	return appendBytes(dst, 3, d.stream())
}

func AppendListTable(dst []byte, names []string) []byte {
	for _, n := range names {
		dst = appendText(dst, 1, n)
	}
	return dst
}

// Location says that the next Repeat splits have the same location.
type Location struct {
	Name   string
	Repeat int64
}

// AppendSplitPoints appends the body of an answer to ComputeSplitPointsBySize. The repeats must add up to the number of
// splits, one more than points; otherwise the SDKs for Java and Go fail.
func AppendSplitPoints(dst []byte, c Capacity, key []KeyColumn, points [][]byte, locations []Location) []byte {
	dst = appendKeySchema(c.append(dst, 1), 2, key)
	for _, p := range points {
		dst = appendBytes(dst, 3, p)
	}
	for _, l := range locations {
		b := appendText(nil, 1, l.Name)
		b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeZigZag(l.Repeat))
		dst = appendBytes(dst, 4, b)
	}
	return dst
}
