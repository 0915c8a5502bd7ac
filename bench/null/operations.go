package null

import (
	"bytes"
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// batches answers BatchWriteRow and BulkImport requests and keeps the last answer without its head: a load's requests have the same
// number of rows, as a rule.
type batches struct {
	path string // of the operation
	name []byte // of the table
	rows int
	last reply
}

// answer returns the answer to a request of a path.
func (b *batches) answer(path string, body []byte) *reply {
	name, rows := countRows(body, path == bulkImport)
	if rows == b.rows && path == b.path && bytes.Equal(name, b.name) {
		return &b.last
	}
	b.path, b.name, b.rows = path, append(b.name[:0], name...), rows
	// Row: is_ok = true, consumed = {capacity_unit = {read = 0, write = 1}}.
	row := []byte{8, 1, 26, 6, 10, 4, 8, 0, 16, 1}
	if path == bulkImport { // capacity_data_size too
		row = []byte{8, 1, 26, 12, 10, 4, 8, 0, 16, 0, 18, 4, 8, 0, 16, 1}
	}
	answered := protowire.AppendBytes([]byte{10}, name)
	for range rows {
		answered = protowire.AppendBytes(append(answered, 18), row)
	}
	if path == batchWriteRow { // which may have several tables
		answered = protowire.AppendBytes([]byte{10}, answered)
	}
	b.last = ok(answered)
	return &b.last
}

// countRows returns the table of a BatchWriteRow or BulkImport request and how many rows it has, stepping over each. What cannot
// be read finds no row.
func countRows(body []byte, bulk bool) (name []byte, rows int) {
	if bulk {
		return tableRows(body)
	}
	for len(body) > 0 {
		number, field, rest := consume(body)
		if number == 1 {
			n := 0
			name, n = tableRows(field)
			rows += n
		}
		body = rest
	}
	return name, rows
}

// tableRows returns the name of a request's table and how many rows it has.
func tableRows(b []byte) (name []byte, rows int) {
	for len(b) > 0 {
		number, value, rest := consume(b)
		switch number {
		case 1:
			name = value
		case 2:
			rows++
		}
		b = rest
	}
	return name, rows
}

// consume takes a field off a message: of a length-delimited one the value. Nothing is left of what cannot be read.
func consume(b []byte) (number int, value, rest []byte) {
	tag, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, nil
	}
	b = b[n:]
	if tag&7 == uint64(protowire.BytesType) {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return 0, nil, nil
		}
		return int(tag >> 3), b[n : n+int(length)], b[n+int(length):]
	}
	n = protowire.ConsumeFieldValue(protowire.Number(tag>>3), protowire.Type(tag&7), b)
	if n < 0 {
		return 0, nil, nil
	}
	return int(tag >> 3), nil, b[n:]
}

// operate answers all but writes and ranges: what a load asks of a table.
func (s *Server) operate(path string, body []byte) reply {
	switch path {
	case "/ListTable":
		return ok(nil)
	case "/DescribeTable":
		_, name, _ := consume(body)
		return ok(s.describe(name))
	}
	body = protowire.AppendString([]byte{10}, "OTSUnsupportedOperation")
	return newReply("400 Bad Request", protowire.AppendString(append(body, 18), "The null server writes only."))
}

// describe describes a table: one version of each cell, of any age.
func (s *Server) describe(name []byte) []byte {
	meta := protowire.AppendBytes([]byte{10}, name)
	key := append(protowire.AppendString([]byte{10}, Key), 16, 1) // an integer
	meta = protowire.AppendBytes(append(meta, 18), key)
	answer := protowire.AppendBytes([]byte{10}, meta)
	answer = append(answer, 18, 8, 10, 4, 8, 0, 16, 0, 16, 0) // no reserved throughput, never changed
	options := protowire.AppendVarint([]byte{8}, math.MaxUint64)
	options = protowire.AppendVarint(append(options, 16, 1, 40), table.AnyAge)
	answer = protowire.AppendBytes(append(answer, 26), options)
	answer = append(answer, 32, 1) // ACTIVE
	for i := 1; i < s.o.Partitions; i++ {
		column := plainbuffer.NewName(Key)
		step := (s.o.Last - s.o.First) / int64(s.o.Partitions)
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(&column, table.Value{Type: table.Integer, Int: s.o.First + int64(i)*step})
		answer = protowire.AppendBytes(append(answer, 50), r.End())
	}
	return answer
}
