package null

import (
	"bytes"
	"encoding/binary"

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

// operate answers all but writes: what a load asks of a table.
func (s *Server) operate(path string, body []byte) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, first, _ := consume(body)
	name := string(first)
	switch path {
	case "/ListTable":
		var names []byte
		for n := range s.tables {
			names = protowire.AppendString(append(names, 10), n)
		}
		return ok(names)
	case "/CreateTable":
		return s.create(body)
	case "/DescribeTable", "/DeleteTable":
		description := s.tables[name]
		if description == nil {
			return refusal("404 Not Found", "OTSObjectNotExist", "Requested table does not exist.")
		}
		if path == "/DescribeTable" {
			return ok(description)
		}
		delete(s.tables, name)
		return ok(nil)
	}
	return refusal("400 Bad Request", "OTSUnsupportedOperation", "The null server writes only.")
}

// refusal is an answer with an error.
func refusal(status, code, message string) reply {
	body := protowire.AppendString([]byte{10}, code)
	return newReply(status, protowire.AppendString(append(body, 18), message))
}

// defaultDeviation is deviation_cell_version_in_sec of a table that says nothing else.
const defaultDeviation = 86_400

// create makes a table: it keeps what DescribeTable will say, which repeats the request's fields.
func (s *Server) create(body []byte) reply {
	var meta, throughput, options []byte
	for len(body) > 0 {
		number, value, rest := consume(body)
		switch number {
		case 1:
			meta = value
		case 2:
			throughput = value
		case 3:
			options = value
		}
		body = rest
	}
	_, name, columns := consume(meta)
	if s.tables[string(name)] != nil {
		return refusal("409 Conflict", "OTSObjectAlreadyExist", "Requested table already exists.")
	}
	// What a request leaves out takes the service's value; of a field given twice the last one counts.
	options = append(protowire.AppendVarint([]byte{40}, defaultDeviation), options...)
	throughput = append(bytes.Clone(throughput), 16, 0) // last_increase_time
	answer := protowire.AppendBytes([]byte{10}, meta)
	answer = protowire.AppendBytes(append(answer, 18), throughput)
	answer = protowire.AppendBytes(append(answer, 26), options)
	answer = append(answer, 32, 1) // ACTIVE
	_, key, _ := consume(columns)
	for _, row := range s.splits(key) {
		answer = protowire.AppendBytes(append(answer, 50), row)
	}
	s.tables[string(name)] = answer
	return ok(nil)
}

// splits are the bounds of a table's partitions, as rows of the partition key alone.
func (s *Server) splits(key []byte) (rows [][]byte) {
	_, name, rest := consume(key)
	integer := bytes.HasPrefix(rest, []byte{16, 1})
	if !integer || s.o.Partitions < 2 {
		return nil
	}
	column := plainbuffer.NewName(string(name))
	step := (s.o.Last - s.o.First) / int64(s.o.Partitions)
	for i := 1; i < s.o.Partitions; i++ {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(&column, table.Value{Type: table.Integer, Int: s.o.First + int64(i)*step})
		rows = append(rows, r.End())
	}
	return rows
}
