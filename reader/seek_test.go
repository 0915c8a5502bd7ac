package reader

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

// reading is the result of reading a source from a place: the place of each split, and every record as text.
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
	if _, err := s.Sample(200, s.Columns, func(*record.Record) {}); err != nil { // as a load does before it reads
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
	t.Helper()
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

// arrowBytes returns a test file of Arrow.
func arrowBytes(t *testing.T, name string) []byte {
	t.Helper()
	return conformance.Read(t, "arrow/testdata", name)
}

// keepsTheContract checks the source of an item. An item that can be read only once is made again for each reading.
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
	const records, long = 1_000, 11_000 // of the forms whose pieces are large
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
		for _, of := range []string{"orders", "other"}[:1+i%2] { // other tables and tombstones are skipped
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

func TestLongChainKeepsFewSums(t *testing.T) {
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
