package null

import (
	"math"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

func (s *Server) answer(path string, request []byte) (status int, body []byte) {
	switch {
	case path == "/BatchWriteRow":
		eachField(request, func(number protowire.Number, _ uint64, part []byte) {
			if number == 1 { // a table
				// Row: is_ok = true, consumed = {capacity_unit = {read = 0, write = 1}}.
				body = protowire.AppendBytes(append(body, 10), s.written(part, []byte{8, 1, 26, 6, 10, 4, 8, 0, 16, 1}))
			}
		})
	case path == "/BulkImport": // writes one table; the answer includes capacity_data_size
		body = s.written(request, []byte{8, 1, 26, 12, 10, 4, 8, 0, 16, 0, 18, 4, 8, 0, 16, 1})
	case path == "/GetRange" && s.o.Rows != nil:
		return http.StatusOK, s.o.Rows.answer(request)
	case path == "/ListTable":
		return http.StatusOK, nil
	case path == "/DescribeTable":
		eachField(request, func(_ protowire.Number, _ uint64, name []byte) { body = s.describe(name) })
		return http.StatusOK, body
	default:
		body = protowire.AppendString([]byte{10}, "OTSUnsupportedOperation")
		return http.StatusBadRequest, protowire.AppendString(append(body, 18), "The null server supports writes only.")
	}
	s.Requests.Add(1)
	time.Sleep(s.o.Latency)
	return http.StatusOK, body
}

// written counts the rows of one table in a request and returns the table's part of the answer.
func (s *Server) written(part, row []byte) (answer []byte) {
	rows := int64(0)
	eachField(part, func(number protowire.Number, _ uint64, value []byte) {
		switch number {
		case 1: // the table name precedes the rows
			answer = protowire.AppendBytes(append(answer, 10), value)
		case 2:
			rows++
			answer = protowire.AppendBytes(append(answer, 18), row)
		}
	})
	s.Rows.Add(rows)
	return answer
}

// eachField calls each with the fields of a message, in order, until one is malformed.
func eachField(message []byte, each func(number protowire.Number, varint uint64, value []byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		varint, value := uint64(0), []byte(nil)
		switch kind {
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return
		}
		message = message[n:]
		each(number, varint, value)
	}
}

// describe returns the description of a table that keeps one version per cell and accepts any timestamp.
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
	column := plainbuffer.NewName(Key)
	for i := 1; i < s.o.Partitions; i++ {
		at := bench.FirstID + i*((bench.LastID-bench.FirstID)/s.o.Partitions)
		answer = protowire.AppendBytes(append(answer, 50), keyOf(&column, int64(at)))
	}
	return answer
}

func keyOf(column *plainbuffer.Name, key int64) []byte {
	var r plainbuffer.Row
	r.Begin(nil)
	r.Key(column, table.Value{Type: table.Integer, Int: key})
	return r.End()
}
