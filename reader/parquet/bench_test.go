package parquet

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"tsimport/reader/record"
)

type wide struct {
	ID    int64   `parquet:"id,delta"`
	Name  string  `parquet:"name,dict"`
	City  string  `parquet:"city"`
	Price float64 `parquet:"price"`
	Count int32   `parquet:"count"`
	Maybe *int64  `parquet:"maybe,optional"`
	Flag  bool    `parquet:"flag"`
	Note  *string `parquet:"note,optional"`
}

func benchFile(b *testing.B) ([]byte, int) {
	const n = 200_000
	rows := make([]wide, n)
	for i := range rows {
		v, s := int64(i), fmt.Sprintf("note %d of the row", i)
		rows[i] = wide{ID: v, Name: fmt.Sprint("name", i%500), City: fmt.Sprint("city ", i*7919%100_003), Price: float64(i) / 7, Count: int32(i % 1000), Flag: i%3 == 0}
		if i%4 != 0 {
			rows[i].Maybe, rows[i].Note = &v, &s
		}
	}
	var out bytes.Buffer
	if err := pq.Write(&out, rows, pq.Compression(&pq.Snappy)); err != nil {
		b.Fatal(err)
	}
	return out.Bytes(), n
}

func report(b *testing.B, rows, size int) {
	b.SetBytes(int64(size))
	total := float64(rows) * float64(b.N)
	b.ReportMetric(total/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/row")
	b.ReportAllocs()
}

// BenchmarkRecords reads 200,000 rows of eight columns; BenchmarkParquetGoRows is the same by the library's rows.
func BenchmarkRecords(b *testing.B) {
	for _, c := range []struct {
		name    string
		columns []int
	}{{"all", []int{0, 1, 2, 3, 4, 5, 6, 7}}, {"two", []int{0, 3}}} {
		b.Run(c.name, func(b *testing.B) {
			data, n := benchFile(b)
			for b.Loop() {
				f, err := Open(bytes.NewReader(data), int64(len(data)), "x", Options{})
				if err != nil {
					b.Fatal(err)
				}
				p, rows := f.NewParser(c.columns), 0
				for _, s := range f.Splits() {
					if err := p.Parse(s, func(*record.Record) error { rows++; return nil }); err != nil {
						b.Fatal(err)
					}
				}
				if rows != n {
					b.Fatal(rows)
				}
			}
			report(b, n, len(data))
		})
	}
}

func BenchmarkParquetGoRows(b *testing.B) {
	data, n := benchFile(b)
	buf := make([]pq.Row, 512)
	for b.Loop() {
		f, err := pq.OpenFile(bytes.NewReader(data), int64(len(data)), pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
		if err != nil {
			b.Fatal(err)
		}
		total := 0
		for _, g := range f.RowGroups() {
			rows := g.Rows()
			for {
				k, err := rows.ReadRows(buf)
				total += k
				if err == io.EOF {
					break
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			rows.Close()
		}
		if total != n {
			b.Fatal(total)
		}
	}
	report(b, n, len(data))
}
