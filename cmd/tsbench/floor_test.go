package main

import (
	"bytes"
	"crypto/md5"
	"encoding/csv"
	"io"
	"testing"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/null"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/writer"
)

// BenchmarkFloor measures the least work that any client does for a row: encoding/csv, PlainBuffer and the MD5 of
// requests, and decoding a row of an answer. With -cpu 2, two processors work concurrently, as in a load.
func BenchmarkFloor(b *testing.B) {
	const rows = 20_000 // more than fit in the caches
	for _, shape := range bench.Shapes() {
		var text bytes.Buffer
		conformance.Must(b, shape.WriteCSV(b.Context(), &text, rows, seed))
		schema, kinds := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}}},
			[...]table.Type{table.Integer, table.Double, table.String, table.String}
		for _, c := range shape.Columns {
			schema.Columns = append(schema.Columns, table.Column{Source: c.Name, Name: c.Name, Type: kinds[c.Kind]})
		}
		var values [][]table.Value
		conformance.Must(b, shape.EachRow(rows, seed, func(fields []string) {
			row := make([]table.Value, len(fields))
			for i, c := range shape.Columns {
				row[i], _ = null.ValueOf(c.Kind, fields[i])
			}
			values = append(values, row)
		}))
		encoded := func(e *encode.Encoder, block *table.Block) {
			block.Reset()
			for _, row := range values {
				e.Append(block, row, nil, table.Span{}, nil)
			}
		}
		block, request := new(table.Block), []byte(nil)
		encoded(encode.New(schema, table.Put, false), block)
		var refs []table.Ref
		for i := range block.Rows {
			refs = append(refs, table.Ref{Block: block, Index: int32(i)})
		}
		request = writer.AppendRequest(nil, "t", table.Put, table.Ignore, refs)
		page := bytes.Clone(refs[0].Body()[:4]) // one header precedes all rows
		for _, row := range refs {
			page = append(page, row.Body()[4:]...)
		}
		b.Logf("shape %s: %d bytes of CSV, %d on the wire", shape.Name, text.Len()/rows, len(request)/rows)
		for name, stage := range map[string]func() func(){
			"csv": func() func() {
				return func() {
					r := csv.NewReader(bytes.NewReader(text.Bytes()))
					r.ReuseRecord = true
					for {
						if _, err := r.Read(); err == io.EOF {
							return
						}
					}
				}
			},
			"encode": func() func() {
				e, block := encode.New(schema, table.Put, false), new(table.Block)
				return func() { encoded(e, block) }
			},
			"md5": func() func() { return func() { md5.Sum(request) } },
			"decode": func() func() {
				return func() {
					n, err := new(plainbuffer.RowReader).Read(page, nil)
					conformance.True(b, n == rows && err == nil, "%d rows, %v", n, err)
				}
			},
		} {
			b.Run(shape.Name+"/"+name, func(b *testing.B) {
				began, _ := pipeline.Resources()
				b.RunParallel(func(pb *testing.PB) {
					for f := stage(); pb.Next(); {
						f()
					}
				})
				ended, _ := pipeline.Resources()
				b.ReportMetric((ended-began)*1e9/float64(b.N)/rows, "cpu-ns/row")
			})
		}
	}
}
