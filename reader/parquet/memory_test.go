package parquet

import (
	"bytes"
	"errors"
	"io"
	"runtime"
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
		_, err := w.WriteRows([]pq.Row{{v.Level(0, 0, 0), v.Level(0, 0, 1), v.Level(0, 0, 2)}})
		must(t, err)
	}
	must(t, w.Close())
	f := opened(t, b.Bytes(), Options{})
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
	must(t, w.Close())
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
			_, err := w.WriteRows([]pq.Row{{v}})
			must(t, err)
		}
		must(t, w.Close())
		f := opened(t, b.Bytes(), Options{})
		if large := f.LargePages(512 << 10); large != (page > 512<<10) {
			t.Errorf("pages of %d bytes: large %v", page, large)
		}
	}
}

// largePage is a file of n columns that each have one page of 8 MB for 1,000 rows; zstd makes little of it.
func largePage(t *testing.T, columns ...string) []byte {
	t.Helper()
	group := pq.Group{}
	for _, name := range columns {
		group[name] = pq.Optional(pq.Compressed(pq.Encoded(pq.String(), &pq.Plain), &pq.Zstd))
	}
	var b bytes.Buffer
	w := pq.NewWriter(&b, pq.NewSchema("t", group), pq.PageBufferSize(16<<20), pq.DataPageStatistics(false))
	v := pq.ByteArrayValue([]byte(strings.Repeat("v", 8_000)))
	row := make(pq.Row, len(columns))
	for i := range row {
		row[i] = v.Level(0, 1, i)
	}
	for range 1000 {
		_, err := w.WriteRows([]pq.Row{row})
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func TestAParserThatIsReleasedKeepsNoPage(t *testing.T) {
	data := largePage(t, "a")
	f := opened(t, data, Options{})
	p := f.NewParser([]int{0})
	var page *byte
	gone := make(chan struct{})
	must(t, p.Parse(f.Splits()[0], func(*record.Record) error { page = &p.columns[0].mem[0]; return nil }))
	runtime.AddCleanup(page, func(int) { close(gone) }, 0)
	page = nil
	p.Release()
	for range 100 { // cleanups run soon after a collection, in a goroutine
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(p)
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("the page of a parser that was released is still held")
	runtime.KeepAlive(p)
}

func TestWhatDoesNotFitIsRefusedBeforeItIsRead(t *testing.T) {
	data := largePage(t, "a", "b")
	f := opened(t, data, Options{})
	if !f.LargePages(4 << 20) {
		t.Error("a page of 8 MB that is stored in little is not large")
	}
	for _, columns := range [][]int{{0}, {1}, {0, 1}} {
		p := f.NewParser(columns)
		for limit := int64(1 << 20); limit < 32<<20; limit += 1 << 20 {
			p.Limit = limit
			early := f.CheckMemory(columns, limit, true, func() (io.ReaderAt, error) { return bytes.NewReader(data), nil })
			late := p.Parse(f.Splits()[0], func(*record.Record) error { return nil })
			p.Release()
			if errors.Is(early, source.ErrMemory) != errors.Is(late, source.ErrMemory) {
				t.Errorf("columns %v, limit %d: refused before with %v, reading with %v", columns, limit, early, late)
			}
		}
	}
}
