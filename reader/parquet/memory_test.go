package parquet

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"tsimport/reader/record"
	"tsimport/reader/source"
)

// TestPagesAreCountedBeforeTheyAreRead reads a file of compressed pages under every limit: it is read whole, or refused.
func TestPagesAreCountedBeforeTheyAreRead(t *testing.T) {
	var b bytes.Buffer
	group := pq.Group{
		"a": pq.Compressed(pq.Encoded(pq.String(), &pq.RLEDictionary), &pq.Zstd), "b": pq.Compressed(pq.Encoded(pq.String(), &pq.DeltaByteArray), &pq.Zstd),
		"c": pq.Encoded(pq.String(), &pq.Plain),
	}
	w := pq.NewWriter(&b, pq.NewSchema("t", group), pq.DataPageStatistics(false))
	for range 300 {
		v := pq.ByteArrayValue([]byte(strings.Repeat("v", 10_000)))
		if _, err := w.WriteRows([]pq.Row{{v.Level(0, 0, 0), v.Level(0, 0, 1), v.Level(0, 0, 2)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := f.NewParser([]int{0, 1, 2})
	refused, read := 0, 0
	for limit := int64(1 << 10); limit < 64<<20; limit *= 2 {
		p.Limit = limit
		rows := 0
		err := p.Parse(f.Splits()[0], func(*record.Record) error {
			rows++
			if p.held > limit {
				t.Fatalf("%d bytes are held with a limit of %d", p.held, limit)
			}
			return nil
		})
		switch {
		case errors.Is(err, source.ErrMemory) && strings.Contains(err.Error(), "--memory"):
			refused++
		case err != nil || rows != 300:
			t.Errorf("limit %d: %d rows, %v", limit, rows, err)
		default:
			read++
		}
		if p.Release(); p.held != 0 {
			t.Fatalf("%d bytes are held after the memory was given back", p.held)
		}
	}
	if refused == 0 || read == 0 {
		t.Errorf("%d limits refused, %d sufficed; want some of both", refused, read)
	}
}

func TestAFooterThatTakesTooMuchMemoryIsRefused(t *testing.T) {
	var b bytes.Buffer
	w := pq.NewGenericWriter[struct{ A int64 }](&b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), "t", Options{MaxFooter: 10})
	if err == nil || !strings.Contains(err.Error(), "--memory") {
		t.Errorf("got %v, want a refusal that names --memory", err)
	}
}

func TestLargePagesAreNoticed(t *testing.T) {
	for _, page := range []int{64 << 10, 1 << 20} {
		var b bytes.Buffer
		w := pq.NewWriter(&b, pq.NewSchema("t", pq.Group{"a": pq.Encoded(pq.String(), &pq.Plain)}), pq.PageBufferSize(page))
		v := pq.ByteArrayValue([]byte(strings.Repeat("v", 1000))).Level(0, 0, 0)
		for range 4000 {
			if _, err := w.WriteRows([]pq.Row{{v}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), "t", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if large := f.LargePages(512 << 10); large != (page > 512<<10) {
			t.Errorf("pages of %d bytes: large %v", page, large)
		}
	}
}
