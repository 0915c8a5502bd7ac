package scan

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/tabletest"
)

// partitioned is a service with one table and canned responses.
type partitioned struct {
	bounds []table.Value           // partition bounds in DescribeTable's response
	splits func(size int64) []byte // response to ComputeSplitPointsBySize
	refuse string                  // an operation to refuse, and the error code
	sizes  []int64                 // requested split sizes
	seen   []string                // requested operations
}

func (p *partitioned) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	operation := strings.TrimPrefix(r.URL.Path, "/")
	p.seen = append(p.seen, operation)
	answer := func(status int, body []byte) (*http.Response, error) {
		return enginetest.Sign(&http.Response{StatusCode: status, Header: http.Header{}, Request: r}, r.URL.Path, body), nil
	}
	if code, refused := strings.CutPrefix(p.refuse, operation+" "); refused {
		return answer(503, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), code))
	}
	if operation == "DescribeTable" {
		body := conformance.Try(
			hex.DecodeString(
				"0a0d0a02743112070a037569641002120c0a04080010001080e2cfaa061a1108ffffffffffffffffff0110012880a30520012a020800")).Must(conformance.Sure{})
		for _, v := range p.bounds {
			body = message(body, 6, pointRow(v))
		}
		return answer(200, body)
	}
	for len(request) > 0 { // split_size is the only integer field numbered 2
		number, kind, n := protowire.ConsumeTag(request)
		request = request[n:]
		if number == 2 {
			size, _ := protowire.ConsumeVarint(request)
			p.sizes = append(p.sizes, int64(size))
		}
		request = request[protowire.ConsumeFieldValue(number, kind, request):]
	}
	return answer(200, p.splits(p.sizes[len(p.sizes)-1]))
}

func message(dst []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), content)
}

func pointRow(v table.Value) []byte {
	name := plainbuffer.NewName("uid")
	var row plainbuffer.Row
	row.Begin(nil)
	row.Key(&name, v)
	return row.End()
}

type place struct {
	name   string
	repeat int64
}

// splitAnswer returns a response with split points 0, 10, 20 … and locations.
func splitAnswer(points int, places ...place) []byte {
	answer := message(nil, 1, []byte{0x0a, 0x04, 0x08, 0x01, 0x10, 0x00})
	answer = message(answer, 2, append(message(nil, 1, []byte("uid")), 0x10, 0x01))
	for i := range points {
		answer = message(answer, 3, pointRow(table.Value{Type: table.Integer, Int: int64(i) * 10}))
	}
	for _, p := range places {
		location := protowire.AppendTag(message(nil, 1, []byte(p.name)), 2, protowire.VarintType)
		answer = message(answer, 4, protowire.AppendVarint(location, protowire.EncodeZigZag(p.repeat)))
	}
	return answer
}

func partitionsOf(t *testing.T, service http.RoundTripper) *Partitions {
	t.Helper()
	admin := tabletest.Admin(t, client.Target{Endpoint: "http://fake", Instance: "i", Transport: service,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
			AccessKeySecret: server.DefaultAccessKeySecret}})
	return NewPartitions(admin, admin.Client, "t1")
}

func integers(bounds []table.Value) []int64 {
	var found []int64
	for _, b := range bounds {
		found = append(found, b.Int)
	}
	return found
}

func TestReportedPartitionsAreExact(t *testing.T) {
	service := &partitioned{bounds: []table.Value{
		{Type: table.Integer, Int: 7}, {Type: table.Integer, Int: -7}, {Type: table.Integer, Int: 7},
	}}
	bounds, exact, err := partitionsOf(t, service).Read(time.Unix(0, 0))
	conformance.True(t, err == nil && exact && fmt.Sprint(integers(bounds)) == "[-7 7]", "%v, %v, %v", bounds, exact, err)
	conformance.Equal(t, fmt.Sprint(service.seen), "[DescribeTable]", "requests %v", service.seen)
	p, created, replaced := partitionsOf(t, service), int64(-1), errors.New("another table")
	p.See = func(at int64) error { created = at; return replaced }
	bounds, exact, err = p.Read(time.Unix(0, 0))
	conformance.True(t, bounds == nil && !exact && errors.Is(err, replaced) && created == 0, "%v, %v", bounds, err)
}

func TestUnreportedPartitionsAreGuessedFromSizes(t *testing.T) {
	many := func(points int) func(int64) []byte { return func(int64) []byte { return splitAnswer(points) } }
	for _, tt := range []struct {
		name   string
		splits func(int64) []byte
		bounds int
		sizes  string
	}{
		{"a small table", many(0), 0, "[100 10 1]"},
		{"a table of partitions as large as the rule has it", many(3), 3, "[100]"},
		{"a smaller one", func(size int64) []byte { return splitAnswer(int(20 / size)) }, 2, "[100 10]"},
		{"the smallest that is cut", func(size int64) []byte { return splitAnswer(int(2 / size)) }, 2, "[100 10 1]"},
		{"too large for an answer", func(size int64) []byte { return splitAnswer(int(min(1024, 500_000/size))) }, 500,
			"[100 1000]"},
		{"one too large for any answer", many(1024), 1024, "[100 1000 10000 100000]"},
		{"one that is large only at first sight", func(size int64) []byte {
			if size == 100 {
				return splitAnswer(1024)
			}
			return splitAnswer(0)
		}, 0, "[100 1000]"},
	} {
		service := &partitioned{splits: tt.splits}
		bounds, exact, err := partitionsOf(t, service).Read(time.Unix(0, 0))
		conformance.True(t, err == nil && !exact && len(bounds) == tt.bounds && slices.IsSorted(integers(bounds)),
			"%s: %d bounds, exact %v, %v", tt.name, len(bounds), exact, err)
		conformance.Equal(t, fmt.Sprint(service.sizes), tt.sizes, "%s: sizes", tt.name)
	}
}

func TestSplitsInOneLocationAreOnePartition(t *testing.T) {
	for _, tt := range []struct {
		name   string
		places []place
		want   string
	}{
		{"two places", []place{{"a", 2}, {"b", 2}}, "[10]"},
		{"one place", []place{{"a", 4}}, "[]"},
		{"back again", []place{{"a", 1}, {"b", 2}, {"a", 1}}, "[0 20]"},
		{"no place is named", []place{{"", 4}}, "[0 10 20]"},
		{"some are", []place{{"a", 2}, {"", 2}}, "[10 20]"},
		{"no places at all", nil, "[0 10 20]"},
	} {
		service := &partitioned{splits: func(int64) []byte { return splitAnswer(3, tt.places...) }}
		bounds, _, err := partitionsOf(t, service).Read(time.Unix(0, 0))
		conformance.True(t, err == nil && fmt.Sprint(integers(bounds)) == tt.want, "%s: %v, %v", tt.name, bounds, err)
	}
}

func TestSplitPointsAreParsed(t *testing.T) {
	const answer = "0a060a040803100012070a03756964100212070a0373657110011a1d750000000103040300000075696405060000000301" +
		"0000006d0abd09a61a1d750000000103040300000075696405060000000301000000740af2093e22050a0141100422050a01421002"
	body := conformance.Try(hex.DecodeString(answer)).Must(t)
	bounds, exact, err := partitionsOf(t, &partitioned{splits: func(int64) []byte { return body }}).Read(time.Unix(0, 0))
	conformance.True(t, err == nil && !exact && len(bounds) == 1 && string(bounds[0].Bytes) == "t", "%v, %v", bounds, err)
}

// The partitions of a new table are guessed after its first minute. Without guesses, a load would have a single lane.
func TestGuessesAreMadeOncePerMinute(t *testing.T) {
	for _, created := range []bool{false, true} {
		points := 3
		service := &partitioned{splits: func(int64) []byte { return splitAnswer(points) }}
		p := partitionsOf(t, service)
		p.Created = created
		start := time.Unix(1000, 0)
		for i, after := range []time.Duration{0, 59 * time.Second, time.Minute, 61 * time.Second} {
			bounds, exact, err := p.Read(start.Add(after))
			wantBounds, asked := []int{3, 3, 5, 5}[i], []int{1, 1, 2, 2}[i]
			if created {
				wantBounds, asked = []int{0, 0, 5, 5}[i], asked-1
			}
			conformance.True(t, err == nil && !exact && len(bounds) == wantBounds && len(service.sizes) == asked,
				"new %v after %v: %d bounds, exact %v, %d asked, %v", created, after, len(bounds), exact, len(service.sizes), err)
			points = 5
		}
		service.bounds = []table.Value{{Type: table.Integer, Int: 1}} // reported partitions need not wait
		bounds, exact, err := p.Read(start.Add(62 * time.Second))
		conformance.True(t, err == nil && exact && len(bounds) == 1, "%v, exact %v, %v", bounds, exact, err)
	}
}

func TestUnreadablePartitionsAreAnError(t *testing.T) {
	for name, service := range map[string]*partitioned{
		"a refused description":    {refuse: "DescribeTable OTSServerBusy"},
		"refused sizes":            {refuse: "ComputeSplitPointsBySize OTSServerBusy"},
		"more places than splits":  {splits: func(int64) []byte { return splitAnswer(1, place{"a", 3}) }},
		"a point that is no row":   {splits: func(int64) []byte { return message(splitAnswer(1), 3, []byte{1, 2, 3}) }},
		"an answer without a body": {splits: func(int64) []byte { return message(nil, 3, nil) }},
		"no protobuf":              {splits: func(int64) []byte { return []byte("<html>") }},
	} {
		p := partitionsOf(t, service)
		bounds, exact, err := p.Read(time.Unix(1, 0))
		conformance.True(t, !exact && bounds == nil, "%s: %v, exact %v, %v", name, bounds, exact, err)
		conformance.InALine(t, err, "table t1", "%s", name)
		requests := len(service.seen)
		_, _, again := p.Read(time.Unix(2, 0))
		conformance.True(t, again != nil && len(service.seen) == requests+1, "%s: a second later %v", name, again)
	}
}

func TestSizeIsLimitedBySplits(t *testing.T) {
	for points, want := range map[int]struct {
		bytes int64
		asked int
	}{0: {100 << 20, 1}, 4: {500 << 20, 1}, guessLimit: {50 * 100 << 20, 2}} {
		service := &partitioned{splits: func(size int64) []byte {
			if size > 1 {
				return splitAnswer(4, place{"a", 5})
			}
			return splitAnswer(points, place{"a", int64(points + 1)})
		}}
		got, err := partitionsOf(t, service).Size()
		conformance.True(t, err == nil && got == want.bytes && len(service.sizes) == want.asked, "%d: %d", points, got)
	}
	_, err := partitionsOf(t, &partitioned{refuse: "ComputeSplitPointsBySize OTSServerBusy"}).Size()
	conformance.True(t, err != nil, "a service that refuses")
}

func TestPackedRowsEqualScan(t *testing.T) {
	sdk := tableOf(t, 11_000, nil) // three pages
	var rows []*Row
	o := Options{From: []table.Value{{Type: table.Integer, Int: 17}}, To: []table.Value{{Type: table.Integer, Int: 10900}}}
	must(t, Table(t.Context(), sdk, "t", key, o, func(r *Row) error { rows = append(rows, r); return nil }))
	first := rows[0].PrimaryKey.PrimaryKeys[0].Value
	conformance.True(t, first == int64(17) && len(rows) == 10_883, "%d rows from %v", len(rows), first)
	n := 0
	memory, page := new(client.PageMemory), new(PackedPage)
	err := Packed(t.Context(), sdk, "t", key, o, page, func(i int) error {
		key := page.Key(i)
		got, err := memory.Unpack(page.Row(i))
		if err != nil || !reflect.DeepEqual(got, rows[n]) {
			return fmt.Errorf("row %d is %v, want %v: %w", n, got, rows[n], err)
		}
		if want := table.AppendKey(nil, client.ValueOf(got.PrimaryKey.PrimaryKeys[0].Value)); !bytes.Equal(key, want) {
			return fmt.Errorf("the ordering key is %x, want %x", key, want)
		}
		n++
		return nil
	})
	conformance.True(t, err == nil && n == len(rows), "%d rows of %d: %v", n, len(rows), err)
}

type answering struct {
	rows []*Row
	next *tablestore.PrimaryKey
}

func (a *answering) GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	return &tablestore.GetRangeResponse{Rows: a.rows, NextStartPrimaryKey: a.next}, nil
}

func TestPagesAreChecked(t *testing.T) {
	pk := func(values ...any) *tablestore.PrimaryKey {
		var columns []any
		for i, v := range values {
			columns = append(columns, fmt.Sprint("k", i), v)
		}
		return tabletest.Key(columns...)
	}
	two := []table.KeyColumn{{Name: "k0", Type: table.Integer}, {Name: "k1", Type: table.String}}
	o := Options{From: []table.Value{{Type: table.Integer, Int: 5}}, To: []table.Value{{Type: table.Integer, Int: 9}},
		RetryFor: time.Nanosecond}
	for name, c := range map[string]struct {
		keys []*tablestore.PrimaryKey
		next *tablestore.PrimaryKey
		ok   bool
	}{
		"none":             {nil, nil, true},
		"one":              {[]*tablestore.PrimaryKey{pk(int64(5), "")}, nil, true},
		"in order":         {[]*tablestore.PrimaryKey{pk(int64(5), "a"), pk(int64(5), "a\x00"), pk(int64(8), "")}, nil, true},
		"before the range": {[]*tablestore.PrimaryKey{pk(int64(4), "z"), pk(int64(6), "a")}, nil, false},
		"after the range":  {[]*tablestore.PrimaryKey{pk(int64(6), "z"), pk(int64(9), "")}, nil, false},
		"out of order":     {[]*tablestore.PrimaryKey{pk(int64(5), "b"), pk(int64(5), "a"), pk(int64(6), "a")}, nil, false},
		"twice":            {[]*tablestore.PrimaryKey{pk(int64(5), "b"), pk(int64(5), "b")}, nil, false},
		"next is before":   {[]*tablestore.PrimaryKey{pk(int64(5), "b"), pk(int64(7), "b")}, pk(int64(6), "a"), false},
		"one column":       {[]*tablestore.PrimaryKey{pk(int64(5), "b"), pk(int64(6))}, nil, false},
		"three columns":    {[]*tablestore.PrimaryKey{pk(int64(5), "b", "c")}, nil, false},
	} {
		a := &answering{next: c.next}
		for _, k := range c.keys {
			a.rows = append(a.rows, &Row{PrimaryKey: k})
		}
		count := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := Packed(ctx, a, "t", two, o, new(PackedPage), func(int) error {
			if count++; count > 10 {
				return errors.New("enough")
			}
			return nil
		})
		cancel()
		conformance.Equal(t, err == nil, c.ok, "%s: %v", name, err)
	}
}

// TestGrowingCSVEqualsCSV tests random rows, flushes and resumptions. An interruption may leave bytes after the last
// flush, which are cut off.
func TestGrowingCSVEqualsCSV(t *testing.T) {
	texts := rapid.SampledFrom([]any{"", "x", "a,b", "\"", "\"\"\n", "\r\n", "two\nlines, and a \"quote\"", int64(-5), 0.5,
		true, []byte{}, []byte{0, 1}})
	names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b,c", "\"d\"", "e\nf", "g", "z"}), rapid.ID[string])
	keys := []string{"k", "n"}
	whole, rewritten := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var rows []*Row
		seen := map[string]bool{}
		for i := range rapid.IntRange(0, 20).Draw(t, "rows") {
			r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
			r.PrimaryKey.AddPrimaryKeyColumn("k", rapid.SampledFrom([]any{"", "a\"b", "c"}).Draw(t, "key"))
			r.PrimaryKey.AddPrimaryKeyColumn("n", int64(i))
			columns := names.Draw(t, "columns")
			slices.Sort(columns)
			for _, c := range columns {
				seen[c] = true
				r.Columns = append(r.Columns, &tablestore.AttributeColumn{ColumnName: c, Value: texts.Draw(t, "value")})
			}
			rows = append(rows, r)
		}
		attributes := slices.Sorted(maps.Keys(seen))
		var want, file, got bytes.Buffer
		known := conformance.Try(NewCSV(&want, keys, attributes)).Must(t)
		grown, fields := NewGrowing(&file, keys, Growth{}, 0), new(Fields)
		for _, row := range rows {
			r := fieldsOf(t, fields, row)
			must(t, known.Write(r))
			must(t, grown.Write(r))
			if rapid.IntRange(0, 3).Draw(t, "interrupted") == 0 {
				must(t, grown.Flush())
				noted, size := Growth{slices.Clone(grown.Order), slices.Clone(grown.Sections)}, file.Len()
				must(t, grown.Write(r))
				must(t, grown.Flush())
				file.Truncate(size)
				grown = NewGrowing(&file, keys, noted, int64(size))
			}
		}
		must(t, known.Flush())
		must(t, grown.Flush())
		if grown.Whole() {
			whole++
			got = file
		} else {
			rewritten++
			for _, wrong := range []int64{-1, 1} {
				conformance.MustTrue(t, grown.Rewrite(new(bytes.Buffer), bytes.NewReader(file.Bytes()), keys,
					slices.Sorted(slices.Values(grown.Order)), int64(len(rows))+wrong) != nil,
					"%d rows are %d", len(rows), int64(len(rows))+wrong)
			}
			must(t, grown.Rewrite(&got, &file, keys, slices.Sorted(slices.Values(grown.Order)), int64(len(rows))))
		}
		conformance.MustEqual(t, got.String(), want.String(), "got")
	})
	conformance.True(t, whole != 0 && rewritten != 0, "%d files were CSV, %d were rewritten", whole, rewritten)
}

var must = conformance.Must

// TestTruncatedGrowingCSVIsAnError truncates the file at every byte, so that rows or parts of rows are missing.
func TestTruncatedGrowingCSVIsAnError(t *testing.T) {
	var file bytes.Buffer
	grown, fields := NewGrowing(&file, []string{"n"}, Growth{}, 0), new(Fields)
	for i := range 4 {
		r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
		r.PrimaryKey.AddPrimaryKeyColumn("n", int64(i))
		r.Columns = []*tablestore.AttributeColumn{{ColumnName: fmt.Sprint("c", i/2), Value: "a\n,\"b"}}
		must(t, grown.Write(fieldsOf(t, fields, r)))
		must(t, grown.Flush())
	}
	text := file.Bytes()
	must(t, grown.Rewrite(new(bytes.Buffer), bytes.NewReader(text), []string{"n"}, grown.Order, 4))
	for n := range text {
		conformance.True(t, grown.Rewrite(new(bytes.Buffer), bytes.NewReader(text[:n]), []string{"n"}, grown.Order, 4) != nil,
			"of %d bytes the first %d were enough", len(text), n)
	}
}

// TestLargeValueHasManySplits tests splits of 1 GB or, if there are too many of these, 10 GB.
func TestLargeValueHasManySplits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		at    func(i int) int64
		count int
		sizes string
		value int64
		bytes int64
	}{
		{"no split", func(int) int64 { return 1 }, 1, "[10]", 0, 0},
		{"each its own", func(i int) int64 { return int64(i) }, 100, "[10]", 0, 0},
		{"ten splits within", func(int) int64 { return 7 }, 11, "[10]", 0, 0},
		{"eleven splits within", func(i int) int64 { return min(int64(i), 3) }, 15, "[10]", 3, 11 * 10 * unitBytes},
		{"a table of many splits", func(i int) int64 { return int64(i) / 20 }, 1024, "[10 100]", 0, 2 * 100 * unitBytes},
	} {
		service := new(partitioned)
		service.splits = func(size int64) []byte {
			points := tt.count
			if size > 10 {
				points = 3
			}
			answer := message(nil, 1, []byte{0x0a, 0x04, 0x08, 0x01, 0x10, 0x00})
			answer = message(answer, 2, append(message(nil, 1, []byte("uid")), 0x10, 0x01))
			for i := range points {
				answer = message(answer, 3, pointRow(table.Value{Type: table.Integer, Int: tt.at(i)}))
			}
			return answer
		}
		v, size, err := partitionsOf(t, service).LargeValue()
		conformance.True(t, err == nil && v.Int == tt.value && size == tt.bytes && fmt.Sprint(service.sizes) == tt.sizes,
			"%s: %d with %d bytes, %v, after splits of %v", tt.name, v.Int, size, err, service.sizes)
	}
}
