package reader

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// card is a row of the benchmark's Parquet file.
type card struct {
	CardID                int64
	SellerID              string
	DeviceID, OrderNumber int64
	Amount                float64
	OrderTime, Item       string
}

// BenchmarkFormats reads one large file of each format as a load does, conversion included, with a worker for each
// processor (run it with -cpu 1,2): pieces are prepared and splits parsed by the workers.
func BenchmarkFormats(b *testing.B) {
	const rows = 300_000
	dir := b.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must(b, os.WriteFile(path, content, 0o644))
		return path
	}
	var packed bytes.Buffer
	w := parquet.NewGenericWriter[card](&packed, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(50_000))
	one := card{2000000360, "C791", 928087, 100001, 21.58, "2024-01-01T00:00:00Z", "notebook"}
	for i := range rows {
		one.OrderNumber = int64(i)
		_, err := w.Write([]card{one})
		must(b, err)
	}
	must(b, w.Close())
	quoted := strings.Repeat("\"2000000360\",\"C791\",\"928087\",\"100001\",\"21.58\",\"2024-01-01T00:00:00Z\",\"note\"\"book\"\n", rows)
	line := `{"CardID":2000000360,"SellerID":"C791","DeviceID":928087,"OrderNumber":100001,"Amount":21.58,"OrderTime":"2024-01-01T00:00:00Z","Item":"notebook"}` + "\n"
	for _, path := range []string{
		write("plain.csv", benchmarkText(rows)),
		write("quoted.csv", append(benchmarkText(0), quoted...)),
		write("lines.jsonl", []byte(strings.Repeat(line, rows))),
		write("rows.parquet", packed.Bytes()),
	} {
		set, err := input.Expand(b.Context(), []string{path}, input.Options{})
		must(b, err)
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.SetBytes(set.Items[0].Size)
			for b.Loop() {
				if n := readWith(b, set.Items[0], runtime.GOMAXPROCS(0)); n != rows {
					b.Fatalf("%d records", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

// task is what a worker does: prepare a piece or parse a split.
type task struct {
	piece    source.Piece
	prepared chan error
	split    source.Split
}

// readWith reads an item with so many workers and returns how many records were converted.
func readWith(b *testing.B, item input.Item, workers int) int64 {
	s, err := Open(b.Context(), item, Options{})
	must(b, err)
	defer s.Close()
	must(b, s.Suspend())
	first, err := s.Next() // Parquet's parsers need the file open
	must(b, err)
	var total atomic.Int64
	work := make(chan task, 2*workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { total.Add(convertAll(b, s, work)) })
	}
	pieces := make(chan task, 4*workers)
	go func() {
		for piece, err := first, error(nil); ; piece, err = s.Next() {
			if err != nil {
				if !errors.Is(err, io.EOF) {
					b.Error(err)
				}
				close(pieces)
				return
			}
			t := task{piece: piece, prepared: make(chan error, 1)}
			pieces <- t
			work <- t
		}
	}()
	send := func(splits []source.Split, err error) {
		if err != nil {
			b.Error(err)
		}
		for _, sp := range splits {
			work <- task{split: sp}
		}
	}
	for t := range pieces {
		must(b, <-t.prepared)
		send(s.Add(t.piece))
	}
	send(s.Finish())
	close(work)
	group.Wait()
	return total.Load()
}

func convertAll(b *testing.B, s *File, work <-chan task) (records int64) {
	types := []table.Type{table.Integer, table.String, table.Integer, table.Integer, table.Double, table.String, table.String}
	var columns []table.Column
	var used []int
	for i, name := range s.Columns {
		columns = append(columns, table.Column{Source: name, Name: name, Type: types[i], Exact: true})
		used = append(used, i)
	}
	c, err := convert.New(s.Columns, columns, convert.Options{})
	if err != nil {
		b.Error(err)
	}
	p := s.NewParser(used)
	defer p.Close()
	for t := range work {
		if t.piece != nil {
			t.prepared <- t.piece.Prepare()
			continue
		}
		if _, _, err := p.Parse(t.split, func(rec *record.Record) {
			if _, why := c.Convert(rec); why == nil {
				records++
			}
		}); err != nil {
			b.Error(err)
		}
	}
	return records
}
