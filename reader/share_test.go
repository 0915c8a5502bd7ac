package reader

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// packers compress files made of parts. Each part becomes a separate member, frame or stream.
var packers = map[string]func(w io.Writer) (io.WriteCloser, error){
	"gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) },
	"xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.WriterConfig{DictCap: 64 << 10}.NewWriter(w) },
	"lz4": func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil },
	"s2":  func(w io.Writer) (io.WriteCloser, error) { return s2.NewWriter(w, s2.WriterBlockSize(4<<20)), nil },
	"sz":  func(w io.Writer) (io.WriteCloser, error) { return s2.NewWriter(w, s2.WriterSnappyCompat()), nil },
}

// shareTexts returns texts that compress well or badly. Their headers are shorter or longer than the compressed file.
func shareTexts(t *testing.T) map[string][]byte {
	stream := conformance.Read(t, "arrow/testdata", "many.arrows")
	rnd := rand.New(rand.NewPCG(1, 1))
	var wide, random, lines, array bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&wide, "column_%d,", i)
	}
	wide.WriteString("last\n")
	random.WriteString("id,v\n")
	array.WriteString("[")
	for i := range 3_000 {
		fmt.Fprintf(&random, "%d,%x\n", i, rnd.Uint64())
		fmt.Fprintf(&lines, "{\"id\":%d,\"v\":\"the same\"}\n", i)
		fmt.Fprintf(&array, "{\"id\":%d},\n", i)
	}
	for range 40 {
		wide.WriteString(strings.Repeat("1,", 2000) + "1\n")
	}
	array.WriteString("{\"id\":0}]")
	return map[string][]byte{"wide.csv": wide.Bytes(), "random.csv": random.Bytes(), "lines.jsonl": lines.Bytes(),
		"array.json": array.Bytes(), "utf16.csv": []byte("\xff\xfe" + utf16le(random.String())), "many.arrows": stream}
}

// TestSplitBytesNeverExceedInput adds up the input bytes of the splits, for every format and compression, because
// progress is shown as a share of the input.
func TestSplitBytesNeverExceedInput(t *testing.T) {
	check := func(t *testing.T, name string, body []byte) {
		t.Helper()
		s := opened(t, itemOf(t, name, body), Options{SplitBytes: 8 << 10})
		var n, least int64
		splits := 0
		must(t, eachSplit(s, func(sp source.Split) error {
			if splits++; sp.Number == 0 {
				n += sp.Offset // as a load counts the header
			}
			n += sp.Bytes
			conformance.True(t, n >= least && n <= s.Size, "%d of %d bytes, and %d before", n, s.Size, least)
			least = n
			return nil
		}))
		conformance.True(t, splits != 0 && float64(n) >= 0.9*float64(s.Size), "%d: %d of %d bytes", splits, n, s.Size)
	}
	for name, text := range shareTexts(t) {
		t.Run(name, func(t *testing.T) { check(t, name, text) })
		for kind, pack := range packers {
			for _, members := range []int{1, 8} {
				t.Run(fmt.Sprintf("%s.%s of %d", name, kind, members), func(t *testing.T) {
					var b bytes.Buffer
					for i := range members {
						w := conformance.Try(pack(&b)).Must(t)
						must(t, conformance.ErrorOf(w.Write(text[i*len(text)/members:(i+1)*len(text)/members])))
						must(t, w.Close())
					}
					check(t, name+"."+kind, b.Bytes())
				})
			}
		}
		if tool, err := exec.LookPath("bzip2"); err == nil {
			t.Run(name+".bz2", func(t *testing.T) {
				c := exec.Command(tool)
				c.Stdin = bytes.NewReader(text)
				check(t, name+".bz2", conformance.Try(c.Output()).Must(t))
			})
		}
	}
}

func TestFirstBlockLargerThanHeadIsRead(t *testing.T) {
	text := []byte("id,v\n")
	for rnd := rand.New(rand.NewPCG(2, 2)); len(text) < 5<<20; {
		text = fmt.Appendf(text, "%d,%x\n", len(text), rnd.Uint64())
	}
	for _, kind := range []string{"lz4", "s2"} {
		var b bytes.Buffer
		w := conformance.Try(packers[kind](&b)).Must(t)
		must(t, conformance.ErrorOf(w.Write(text)))
		must(t, w.Close())
		c := readAll(itemOf(t, "in.csv."+kind, b.Bytes()), Options{})
		conformance.True(t, c.err == nil && int(c.rows) == bytes.Count(text, []byte("\n"))-1,
			"%s: %d records, %v", kind, int(c.rows), c.err)
		b.Truncate(2 << 20)
		c = readAll(itemOf(t, "in.csv."+kind, b.Bytes()), Options{})
		conformance.True(t, c.err != nil && !errors.Is(c.err, ErrEmpty), "%s, cut: %d records, %v", kind, c.rows, c.err)
	}
}

// TestOnlyContentErrorsAreDamage: only its content may cause an input to be skipped, not a server, disk or machine.
func TestOnlyContentErrorsAreDamage(t *testing.T) {
	answers := map[string]int{"/gone": 404, "/forbidden": 403, "/busy": 503}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[r.URL.Path])
	}))
	defer server.Close()
	errs := map[string]error{"disk": &os.PathError{Op: "read", Path: "a", Err: syscall.EIO},
		"memory": source.ErrMemory, "stopped": context.Canceled, "changed": input.ErrChanged}
	for name := range answers {
		_, errs[name] = input.Expand(t.Context(), []string{server.URL + name}, input.Options{Retry: input.Retry{Attempts: 1}})
	}
	for name, err := range errs {
		conformance.True(t, err != nil && !Damaged(fmt.Errorf("read a: %w", err)), "%s: %v counts as damage", name, err)
	}
	conformance.True(t, Damaged(errors.New("the page is cut short")) && !Damaged(nil), "damage is none, or none is damage")
}

// TestReadAgainFindsFault checks that each reading of a damaged file finds the same lasting fault, and of a good one none.
func TestReadAgainFindsFault(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, "id,n\n")
	for i := range 100_000 {
		fmt.Fprintf(w, "%d,%d\n", i, i*i)
	}
	must(t, w.Close())
	var rows bytes.Buffer
	must(t, parquet.Write(&rows, []card{{CardID: 1}}))
	for name, text := range map[string]string{"good.csv": "id,n\n1,2\n", "good.csv.gz": packed.String(),
		"cut.csv.gz": packed.String()[:packed.Len()/2], "cut.json": `[{"id":1},{"id":`, "good.parquet": rows.String(),
		"cut pages.parquet": strings.Replace(rows.String(), "PAR1\x15", "PAR1\xff", 1)} {
		s := conformance.Try(Open(t.Context(), itemOf(t, name, []byte(text)), Options{})).Must(t)
		again, second := s.ReadAgain(0), s.ReadAgain(0)
		cut := strings.HasPrefix(name, "cut")
		if errors.As(again, new(*source.Lasting)) != cut || cut && again.Error() != second.Error() {
			t.Errorf("%s: %v, then %v", name, again, second)
		}
		must(t, s.Close())
	}
}

// card is a row of the Parquet file in the benchmark.
type card struct {
	CardID                int64
	SellerID              string
	DeviceID, OrderNumber int64
	Amount                float64
	OrderTime, Item       string
}

// BenchmarkFormats reads a large file of each format as a load would, including conversion. It uses one worker per
// processor (use -cpu 1,2). Workers prepare pieces and parse splits.
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
		must(b, conformance.ErrorOf(w.Write([]card{one})))
	}
	must(b, w.Close())
	quoted := strings.Repeat(
		"\"2000000360\",\"C791\",\"928087\",\"100001\",\"21.58\",\"2024-01-01T00:00:00Z\",\"note\"\"book\"\n", rows)
	line := `{"CardID":2000000360,"SellerID":"C791","DeviceID":928087,"OrderNumber":100001,"Amount":21.58,"OrderTime":"2024-01-01T00:00:00Z","Item":"notebook"}` + "\n"
	for _, path := range []string{
		write("plain.csv", benchmarkText(rows)),
		write("quoted.csv", append(benchmarkText(0), quoted...)),
		write("lines.jsonl", []byte(strings.Repeat(line, rows))),
		write("rows.parquet", packed.Bytes()),
	} {
		set := conformance.Try(input.Expand(b.Context(), []string{path}, input.Options{})).Must(b)
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.SetBytes(set.Items[0].Size)
			for b.Loop() {
				n := readWith(b, set.Items[0], runtime.GOMAXPROCS(0))
				conformance.MustTrue(b, n == rows, "%d records", n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

// task is a piece to prepare or a split to parse.
type task struct {
	piece    source.Piece
	prepared chan error
	split    source.Split
}

// readWith reads an item with a number of workers. It returns the number of converted records.
func readWith(b *testing.B, item input.Item, workers int) int64 {
	s := conformance.Try(Open(b.Context(), item, Options{})).Must(b)
	defer s.Close()
	must(b, s.Suspend())
	first := conformance.Try(s.Next()).Must(b)
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
				conformance.True(b, errors.Is(err, io.EOF), "%v", err)
				close(pieces)
				return
			}
			t := task{piece: piece, prepared: make(chan error, 1)}
			pieces <- t
			work <- t
		}
	}()
	send := func(splits []source.Split, err error) {
		conformance.Equal(b, err, nil, "error")
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
	types := []table.Type{table.Integer, table.String, table.Integer, table.Integer, table.Double, table.String,
		table.String}
	var columns []table.Column
	var used []int
	for i, name := range s.Columns {
		columns = append(columns, table.Column{Source: name, Name: name, Type: types[i], Exact: true})
		used = append(used, i)
	}
	c, err := convert.New(s.Columns, columns, convert.Options{})
	conformance.Equal(b, err, nil, "error")
	p := s.NewParser(used)
	defer p.Close()
	for t := range work {
		if t.piece != nil {
			t.prepared <- t.piece.Prepare()
			continue
		}
		_, _, err := p.Parse(t.split, func(rec *record.Record) {
			if _, why := c.Convert(rec); why == nil {
				records++
			}
		})
		conformance.Equal(b, err, nil, "error")
	}
	return records
}

// reading is the result of reading from a place: the place of each split, and each record as text.
type reading struct {
	places  []source.Place
	records []string // from the first place on
	chain   source.Chain
}

func readFrom(item input.Item, o Options, from *source.Place, known source.Chain) (r reading, err error) {
	s, err := Open(context.Background(), item, o)
	if err != nil {
		return r, err
	}
	defer s.Close()
	if _, err := s.Sample(200, s.Columns, func(*record.Record) {}); err != nil { // as a load does
		return r, err
	}
	if err := s.Suspend(); err != nil {
		return r, err
	}
	if from != nil {
		s.Seek(*from, known)
	}
	var p source.Parser
	at := source.Place{Record: -1}
	err = eachSplit(s, func(sp source.Split) error {
		if p == nil {
			at, p = s.Begin(), s.NewParser(all(s))
		}
		at.Offset = sp.Offset
		r.places = append(r.places, at)
		records, lines, err := p.Parse(sp, func(rec *record.Record) {
			var fields []string
			for i := range rec.Fields {
				fields = append(fields, convert.Text(&rec.Fields[i]))
			}
			r.records = append(r.records, strings.Join(fields, "|"))
		})
		at.Record, at.Line = at.Record+int64(records), at.Line+int64(lines)
		return err
	})
	if p != nil {
		p.Close()
	}
	if chain := s.About().Chain; chain != nil {
		r.chain = chain()
	}
	return r, err
}

func parquetRows(t *testing.T, rows, group int) []byte {
	type row struct {
		ID int64  `parquet:"id"`
		V  string `parquet:"v"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(int64(group)))
	for i := range rows {
		must(t, conformance.ErrorOf(w.Write([]row{{int64(i), fmt.Sprint("v", i)}})))
	}
	must(t, w.Close())
	return b.Bytes()
}

// arrowBytes returns an Arrow test file.
func arrowBytes(t *testing.T, name string) []byte {
	t.Helper()
	return conformance.Read(t, "arrow/testdata", name)
}

// keepsTheContract checks the source of an item. An item that can be read only once is created for each reading.
func keepsTheContract(t *testing.T, item func() input.Item, o Options) {
	t.Helper()
	one := item()
	sourcetest.Check(t, func() source.Source {
		if !one.Seekable() {
			one = item()
		}
		return conformance.Try(Open(t.Context(), one, o)).Must(t)
	})
}

func TestFilesKeepSourceContract(t *testing.T) {
	var b, jsonl, array, pretty, dynamo, mongo, changes bytes.Buffer
	b.WriteString("\xef\xbb\xbfid,\"na\nme\",v\r\n")
	const records, long = 1_000, 11_000 // for formats with large pieces
	short := 0
	for i := range long {
		fill := i % 40
		if i >= records {
			fill = 400
		}
		fmt.Fprintf(&b, "%d,\"a \"\"quoted\"\" text,\nover %d lines\",%s\r\n", i, i%3, strings.Repeat("x", fill))
		if i >= records {
			continue
		}
		short = b.Len()
		fmt.Fprintf(&jsonl, "{\"id\":%d,\"v\":\"x%d\"}\n", i, i)
		for _, of := range []string{"orders", "other"}[:1+i%2] { // other tables and tombstones are to be skipped
			fmt.Fprintf(&changes, "{\"op\":\"c\",\"after\":{\"id\":%d,\"v\":\"x%d\"},\"source\":{\"table\":%q}}\n%s", i, i, of,
				[]string{"", "null\n"}[i%3/2])
		}
		fmt.Fprintf(&dynamo, "{\"Item\":{\"id\":{\"N\":\"%d\"},\"v\":{\"M\":{\"x\":{\"S\":\"%d\"}}}}}\n", i, i)
		fmt.Fprintf(&mongo, "%c{\"_id\":{\"$oid\":\"%024x\"},\"v\":{\"$numberLong\":\"%d\"}}", "[,"[min(i, 1)], i, i)
		fmt.Fprintf(&array, "%c{\"id\":%d,\"v\":\"x%d\"}", "[,"[min(i, 1)], i, i)
		fmt.Fprintf(&pretty, "{\n  \"id\": %d,\n  \"v\": \"}%d\"\n}\n", i, i)
	}
	array.WriteString("]\n")
	mongo.WriteString("]\n")
	text, longText := b.Bytes()[:short], b.Bytes()
	zipped, wide := gzipped(text), []byte(utf16le(string(text[3:])))
	chained := Options{SplitBytes: 2_000, ChainBytes: 1_500}
	for name, tt := range map[string]struct {
		item func() input.Item
		o    Options
	}{
		"a file":             {fileOf(t, "in.csv", text), Options{SplitBytes: 2_000}},
		"a file cut in turn": {fileOf(t, "in.csv", text), Options{SplitBytes: 2_000, Dialect: inOrder}},
		"JSON lines":         {fileOf(t, "in.jsonl", jsonl.Bytes()), Options{SplitBytes: 2_000}},
		"a JSON array":       {fileOf(t, "in.json", array.Bytes()), Options{SplitBytes: 2_000}},
		"pretty JSON":        {fileOf(t, "in.json", pretty.Bytes()), Options{SplitBytes: 2_000}},
		"JSON in a stream":   {func() input.Item { return streamOf(t, array.Bytes()) }, chained},
		"DynamoDB JSON":      {fileOf(t, "in.json", dynamo.Bytes()), Options{SplitBytes: 2_000}},
		"Extended JSON":      {fileOf(t, "in.json", mongo.Bytes()), Options{SplitBytes: 2_000}},
		"changes": {fileOf(t, "in.json", changes.Bytes()),
			Options{SplitBytes: 2_000, Named: Named{Table: "orders"},
				Changes: &Changes{Typed: func(string) bool { return true }}}},
		"changes in gzip": {fileOf(t, "in.json.gz", gzipped(changes.Bytes())),
			Options{SplitBytes: 2_000, Named: Named{Table: "orders"},
				Changes: &Changes{Typed: func(string) bool { return true }}}},
		"changes in a stream": {func() input.Item { return streamOf(t, changes.Bytes()) },
			Options{SplitBytes: 2_000, ChainBytes: 1_500, Named: Named{Table: "orders"},
				Changes: &Changes{Typed: func(string) bool { return true }}}},
		"UTF-16":             {fileOf(t, "in.csv", wide), Options{SplitBytes: 2_000, Encoding: "utf-16le"}},
		"gzip":               {fileOf(t, "in.gz", zipped), Options{SplitBytes: 2_000}},
		"BGZF":               {fileOf(t, "in.gz", bgzf(longText, 40_000)), Options{SplitBytes: 2_000}},
		"zstd frames":        {fileOf(t, "in.zst", zstdFrames(t, longText, 40_000)), Options{SplitBytes: 2_000}},
		"a stream":           {func() input.Item { return streamOf(t, text) }, chained},
		"gzip in a stream":   {func() input.Item { return streamOf(t, zipped) }, chained},
		"Parquet":            {fileOf(t, "in.parquet", parquetRows(t, records, 400)), Options{}},
		"Arrow":              {fileOf(t, "in.arrow", arrowBytes(t, "many.arrow")), Options{}},
		"Arrow, flat":        {fileOf(t, "in.arrow", arrowBytes(t, "many_lz4.arrow")), Options{Flatten: true}},
		"an Arrow stream":    {fileOf(t, "in.arrows", arrowBytes(t, "many_zstd.arrows")), Options{}},
		"Arrow in a stream":  {func() input.Item { return streamOf(t, arrowBytes(t, "many.arrow")) }, chained},
		"Arrow, compressed":  {fileOf(t, "in.arrows.gz", gzipped(arrowBytes(t, "many.arrows"))), Options{}},
		"a dictionary twice": {fileOf(t, "in.arrows", arrowBytes(t, "replaced.arrows")), Options{}},
	} {
		t.Run(name, func(t *testing.T) { keepsTheContract(t, tt.item, tt.o) })
	}
}

func TestChangedStreamIsRefused(t *testing.T) {
	text := []byte("id,v\n" + strings.Repeat("1,abcdefgh\n", 2000))
	o := Options{SplitBytes: 500, ChainBytes: 100}
	all, err := readFrom(streamOf(t, text), o, nil, source.Chain{})
	conformance.MustTrue(t, err == nil && len(all.chain.Sums) >= 100, "%v, %d sums", err, len(all.chain.Sums))
	place := all.places[len(all.places)/2]
	for _, at := range []int{700, int(place.Offset) - 50, int(place.Offset) + 300} {
		other := bytes.Clone(text)
		other[at] = '#'
		_, err := readFrom(streamOf(t, other), o, &place, all.chain)
		conformance.Refused(t, err, "differs from what the run read before", "byte %d changed", at)
		_, err = readFrom(streamOf(t, other), o, &place, source.Chain{})
		conformance.True(t, err == nil, "byte %d changed, nothing known: %v", at, err)
	}
	_, err = readFrom(streamOf(t, text[:place.Offset-20]), o, &place, source.Chain{})
	conformance.Refused(t, err, "ends before the run's position", "a shorter stream")
}

func TestLongChainHasLimitedSums(t *testing.T) {
	long := newChainer("s", 4)
	rnd := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 4*maxSums*5)
	for i := range text {
		text[i] = byte(rnd.Uint32())
	}
	must(t, conformance.ErrorOf(long.Write(text)))
	c := long.chain()
	conformance.True(t, len(c.Sums) <= maxSums && covers(c) >= int64(len(text))*9/10, "%d of %d", len(c.Sums), len(text))
	again := newChainer("s", 4)
	again.expect(c)
	for part := range bytes.Lines(text) {
		must(t, conformance.ErrorOf(again.Write(part)))
	}
	text[len(text)/2] ^= 1
	other := newChainer("s", 4)
	other.expect(c)
	conformance.Refused(t, conformance.ErrorOf(other.Write(text)), "", "a changed byte was not noticed")
}

func TestFingerprintCoversHeadTailAndMiddle(t *testing.T) {
	text := bytes.Repeat([]byte("1,abcdefg\n"), 100_000)
	of := func(content []byte) string {
		return conformance.Try(opened(t, itemOf(t, "in.csv", content), Options{}).fingerprint()).Must(t)
	}
	same := of(text)
	conformance.Equal(t, of(text), same, "the same file has two fingerprints")
	for _, at := range []int{0, len(text) / 2, len(text) - 2} {
		other := bytes.Clone(text)
		other[at] = 'x'
		conformance.True(t, of(other) != same, "byte %d changed: the same fingerprint", at)
	}
	item := itemOf(t, "in.csv", text)
	s := opened(t, item, Options{})
	must(t, os.Chtimes(item.Name, time.Now(), time.Unix(1, 0)))
	conformance.Refused(t, conformance.ErrorOf(s.fingerprint()), "", "a changed file has a fingerprint")
	stream := conformance.Try(Open(t.Context(), streamOf(t, text), Options{})).Must(t)
	defer stream.Close()
	print, err := stream.fingerprint()
	conformance.True(t, err == nil && print != "", "a stream: %q, %v", print, err)
}
