package scan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/tabletest"
)

var key = []table.KeyColumn{{Name: "id", Type: table.Integer}}

// tableOf creates a table t with rows 0 to n−1 and returns a client for it.
func tableOf(t *testing.T, n int, plan *faults.Plan) *tablestore.TableStoreClient {
	t.Helper()
	s := tabletest.Open(t, server.Options{Faults: plan})
	must(t, s.Admin.Create("t", key, tabletest.Plain))
	tabletest.Fill(t, s.SDK, n, func(i int) tablestore.RowChange {
		return tabletest.Put("t", tabletest.Key("id", int64(i)), tabletest.Cells{"n": int64(-i), "s": fmt.Sprint("row ", i)})
	})
	return s.SDK
}

func TestScanDeliversEveryRowOnceInOrder(t *testing.T) {
	const rows = 12_345 // three pages
	sdk := tableOf(t, rows, nil)
	for _, limit := range []int64{0, 1, 4999, 5000, 5001, rows, rows + 1} {
		next := int64(0)
		err := Table(t.Context(), sdk, "t", key, Options{Limit: limit, Manner: Manner{Gate: NewGate(0)}}, func(r *Row) error {
			if got := r.PrimaryKey.PrimaryKeys[0].Value; got != next || len(r.Columns) != 2 {
				return fmt.Errorf("row %v with %d columns, want row %d", got, len(r.Columns), next)
			}
			next++
			return nil
		})
		want := int64(rows)
		if limit > 0 {
			want = min(limit, rows)
		}
		conformance.True(t, err == nil && next == want, "limit %d: %d rows, %v", limit, next, err)
	}
}

func TestScanSurvivesTemporaryFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := []faults.Fault{
			{Action: faults.Refuse, Code: "OTSServerBusy"}, {Action: faults.Refuse, Code: "OTSPartitionUnavailable"},
			{Action: faults.Refuse, Code: "OTSTimeout"}, {Action: faults.DropAfter}, {Action: faults.TruncateBody},
			{Action: faults.BadBody},
			{Action: faults.BadBody, Code: "404"}, {Action: faults.PageAfter, Code: "429"}, {Action: faults.Redirect},
			{Action: faults.FlipBit, Bit: 3}, {Action: faults.FlipBit, Bit: 99}, {Action: faults.FlipBit, Bit: 12_345},
		}
		plan := &faults.Plan{Only: func(op string) bool { return op == "GetRange" }}
		plan.Decide = func(r faults.Request) faults.Fault {
			if r.N%2 == 0 && r.N/2 < len(ways) {
				return ways[r.N/2]
			}
			return faults.Fault{}
		}
		sdk := tableOf(t, 11_000, plan)
		rows := 0
		const scans = 5
		for range scans {
			must(t, Table(context.Background(), sdk, "t", key, Options{}, func(*Row) error { rows++; return nil }))
		}
		conformance.Equal(t, rows, scans*11_000, "rows in %d scans", scans)
		conformance.True(t, plan.Requests() >= 2*len(ways), "only %d requests: not every fault happened", plan.Requests())
	})
}

func TestScanStopsAtPermanentErrors(t *testing.T) {
	plan := &faults.Plan{Only: func(op string) bool { return op == "GetRange" }}
	sdk := tableOf(t, 10, plan)
	plan.Decide = func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"} }
	err := Table(context.Background(), sdk, "t", key, Options{}, func(*Row) error { return nil })
	conformance.True(t, err != nil && strings.Contains(err.Error(), "OTSAuthFailed"), "got %v", err)
	plan.Decide = func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"} }
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	cancel(stopped)
	err = Table(ctx, sdk, "t", key, Options{}, func(*Row) error { return nil })
	conformance.True(t, errors.As(err, new(*StoppedError)) && errors.Is(err, stopped) &&
		strings.Contains(err.Error(), "stopped, while retrying after OTSServerBusy"),
		"got %v", err)
	gate := NewGate(1)
	gate.free = time.Now().Add(time.Hour)
	err = Table(ctx, sdk, "t", key, Options{Manner: Manner{Gate: gate}}, func(*Row) error { return nil })
	conformance.True(t, errors.Is(err, stopped) && strings.Count(err.Error(), "stopped") == 1, "got %v", err)
	plan.Decide = nil
	enough := errors.New("enough")
	conformance.Is(t, Table(t.Context(), sdk, "t", key, Options{}, func(*Row) error { return enough }), enough, "got")
}

// everyType returns a row with values that are hard to write, of every type.
func everyType() *Row {
	r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
	r.PrimaryKey.AddPrimaryKeyColumn("id", int64(math.MinInt64))
	for _, c := range []struct {
		name  string
		value any
	}{
		{"b", []byte{0, 255}}, {"d", 1.5}, {"e", ""}, {"eb", []byte{}}, {"f", false}, {"i", int64(math.MaxInt64)},
		{"l", 1e300}, {"q", "a,\"b\"\r\n"}, {"w", 5.0}, {"表", "<中文>"},
	} {
		r.Columns = append(r.Columns, &tablestore.AttributeColumn{ColumnName: c.name, Value: c.value})
	}
	return r
}

func fieldsOf(t interface {
	Helper()
	Fatal(args ...any)
}, into *Fields, r *Row) *Fields {
	t.Helper()
	into.Read(conformance.Try(client.PackRow(plainbuffer.Names{}, r)).Must(t))
	return into
}

func TestCSVRoundTrip(t *testing.T) {
	var out bytes.Buffer
	columns := []string{"b", "d", "e", "eb", "f", "i", "l", "missing", "q", "w", "表"}
	f := conformance.Try(NewCSV(&out, []string{"id"}, columns)).Must(t)
	must(t, errors.Join(f.Write(fieldsOf(t, new(Fields), everyType())), f.Flush()))
	records, err := csv.NewReader(strings.NewReader(strings.ReplaceAll(out.String(), "\r\n", "␍\n"))).ReadAll()
	must(t, err)
	want := "-9223372036854775808|AP8=|1.5|||false|9223372036854775807|1e+300||a,\"b\"␍\n|5|<中文>"
	conformance.Equal(t, strings.Join(records[1], "|"), want, "result")
	conformance.Contains(t, out.String(), `1.5,"","",false`, "empty values are not told from absent ones")
}

func TestJSONLinesShowTypes(t *testing.T) {
	var out bytes.Buffer
	f := NewJSONL(&out, []string{"id"})
	must(t, errors.Join(f.Write(fieldsOf(t, new(Fields), everyType())), f.Flush()))
	want := `{"id":-9223372036854775808,"b":{"base64":"AP8="},"d":1.5,"e":"","eb":{"base64":""},"f":false,` +
		`"i":9223372036854775807,"l":1e+300,"q":"a,\"b\"\r\n","w":5.0,"表":"<中文>"}` + "\n"
	conformance.Equal(t, out.String(), want, "got")
}

func TestJSONLinesRefuseNonFiniteDoubles(t *testing.T) {
	for want, v := range map[string]any{`"a" has the double NaN`: math.NaN(), `"a" has the double -Inf`: math.Inf(-1)} {
		r := &Row{PrimaryKey: new(tablestore.PrimaryKey), Columns: []*tablestore.AttributeColumn{{ColumnName: "a", Value: v}}}
		conformance.Refused(t, NewJSONL(new(bytes.Buffer), nil).Write(fieldsOf(t, new(Fields), r)), want, "%v", v)
	}
}

func TestSpoolRoundTrip(t *testing.T) {
	var kept bytes.Buffer
	s := conformance.Try(NewSpool(&kept)).Must(t)
	fields := fieldsOf(t, new(Fields), everyType())
	for i := range 3000 {
		must(t, s.Write(fields))
		if i%1000 == 7 { // at several places in the file
			must(t, s.Flush())
		}
	}
	must(t, s.Flush())
	rows := 0
	err := Replay(&kept, 3000, func(row []byte) error {
		rows++
		if !bytes.Equal(row, plainbuffer.WithoutHeader(fields.Row)) {
			return fmt.Errorf("got %q", row)
		}
		return nil
	})
	conformance.True(t, err == nil && rows == 3000, "%d rows, %v", rows, err)
}

// full is a file with room for some more bytes.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return max(f.room+len(b), 0), errFull
	}
	return len(b), nil
}

func TestFullDiskIsReportedByEveryFormat(t *testing.T) {
	row := everyType()
	row.Columns = append(row.Columns, &tablestore.AttributeColumn{ColumnName: "large", Value: make([]byte, 1000)})
	fields := fieldsOf(t, new(Fields), row)
	for name, open := range map[string]func(io.Writer) (Formatter, error){
		"CSV":     func(w io.Writer) (Formatter, error) { return NewCSV(w, []string{"id"}, []string{"large"}) },
		"JSON":    func(w io.Writer) (Formatter, error) { return NewJSONL(w, []string{"id"}), nil },
		"spool":   func(w io.Writer) (Formatter, error) { return NewSpool(w) },
		"growing": func(w io.Writer) (Formatter, error) { return NewGrowing(w, []string{"id"}, Growth{}, 0), nil },
	} {
		for _, rows := range []int{1, 200, 2000} {
			write := func(room int) (left int, err error) {
				w := &full{room}
				f, err := open(w)
				for range rows {
					err = cmp.Or(err, f.Write(fields))
				}
				flushed := f.Flush()
				conformance.True(t, err == nil || flushed != nil, "%s: %d rows are flushed after %v", name, rows, err)
				return w.room, cmp.Or(err, flushed)
			}
			left, err := write(math.MaxInt)
			must(t, err)
			for _, room := range []int{0, 1, (math.MaxInt - left) / 2, math.MaxInt - left - 1} {
				conformance.Is(t, conformance.ErrorOf(write(room)), errFull, "%s: %d rows in %d bytes", name, rows, room)
			}
		}
	}
}

func TestTruncatedSpoolIsAnError(t *testing.T) {
	var kept bytes.Buffer
	s := conformance.Try(NewSpool(&kept)).Must(t)
	must(t, errors.Join(s.Write(fieldsOf(t, new(Fields), everyType())), s.Flush()))
	for _, cut := range []int{0, 1, kept.Len() - 1} {
		conformance.Refused(t, Replay(bytes.NewReader(kept.Bytes()[:cut]), 1, func([]byte) error { return nil }), "",
			"of %d bytes the first %d were enough", kept.Len(), cut)
	}
	conformance.Refused(t, Replay(bytes.NewReader(kept.Bytes()), 2, func([]byte) error { return nil }), "", "lost")
}

func TestDamagedSpoolRowIsAnError(t *testing.T) {
	row := bytes.Clone(fieldsOf(t, new(Fields), everyType()).Row)
	row[len(row)-1] ^= 1
	var kept bytes.Buffer
	s := conformance.Try(NewSpool(&kept)).Must(t)
	must(t, errors.Join(s.Write(&Fields{Row: row}), s.Flush()))
	conformance.Refused(t, Replay(&kept, 1, func([]byte) error { return nil }), "read export spool", "a checksum")
}

type refusing struct {
	Getter
	codes    [][]string // error codes by request and row; later requests succeed
	requests int
}

func (r *refusing) BatchGetRow(req *tablestore.BatchGetRowRequest) (*tablestore.BatchGetRowResponse, error) {
	r.requests++
	res, err := r.Getter.BatchGetRow(req)
	if err != nil || len(r.codes) == 0 {
		return res, err
	}
	codes := r.codes[0]
	r.codes = r.codes[1:]
	rows := res.TableToRowsResult["t"]
	for i := range rows {
		if code, both := strings.CutPrefix(codes[i%len(codes)], "a row and "); both {
			rows[i].Error.Code = code
		} else if code != "" {
			rows[i] = tablestore.RowResult{TableName: "t", Error: tablestore.Error{Code: code, Message: "no"}, Index: int32(i)}
		}
	}
	return res, nil
}

func TestGetRetriesRefusedRows(t *testing.T) {
	sdk := tableOf(t, 50, nil)
	var keys [][]table.Value
	for i := range int64(MaxGetRows) {
		keys = append(keys, []table.Value{{Type: table.Integer, Int: 99 - i}})
	}
	busy := []string{"OTSServerBusy", "", "OTSPartitionUnavailable"}
	s := &refusing{Getter: sdk, codes: [][]string{busy, {"OTSNotEnoughCapacityUnit"}, busy}}
	var units atomic.Int64
	rows, err := Get(context.Background(), s, "t", key, keys, Options{Columns: []string{"n"}, Units: &units})
	must(t, err)
	for i, r := range rows {
		id := int64(99 - i)
		switch {
		case id >= 50 && r != nil:
			t.Errorf("row %d is not there, but %v", id, r)
		case id < 50 && (r == nil || len(r.Columns) != 1 || r.Columns[0].Value != -id):
			t.Errorf("row %d came as %v", id, r)
		}
	}
	conformance.True(t, s.requests >= 4 && units.Load() != 0, "%d requests, %d units", s.requests, units.Load())
	for _, codes := range [][]string{{"OTSParameterInvalid"}, busy} {
		ctx, cancel := context.WithCancelCause(context.Background())
		stopped := errors.New("OTSParameterInvalid is not why")
		cancel(stopped)
		_, err := Get(ctx, &refusing{Getter: sdk, codes: [][]string{codes}}, "t", key, keys, Options{})
		conformance.True(t, err != nil && errors.Is(err, stopped) == (len(codes) > 1), "%q, then stopped: %v", codes, err)
	}
}

type repeating struct {
	Service
	n    int
	kept *tablestore.GetRangeResponse
}

func (r *repeating) GetRange(req *tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	if r.n++; r.n%2 == 0 {
		return r.kept, nil
	}
	page, err := r.Service.GetRange(req)
	if r.kept == nil {
		r.kept = page
	}
	return page, err
}

func TestPageOfOtherRequestIsRetried(t *testing.T) {
	const rows = 12_000
	next := int64(0)
	err := Table(t.Context(), &repeating{Service: tableOf(t, rows, nil)}, "t", key, Options{}, func(r *Row) error {
		if r.PrimaryKey.PrimaryKeys[0].Value != next {
			return fmt.Errorf("row %v, want row %d", r.PrimaryKey.PrimaryKeys[0].Value, next)
		}
		next++
		return nil
	})
	conformance.True(t, err == nil && next == rows, "%d rows, %v", next, err)
}

func TestRefusedRowIsRetriedAtAnyPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 9
		sdk := tableOf(t, rows, nil)
		keys := make([][]table.Value, rows)
		for i := range keys {
			keys[i] = []table.Value{{Type: table.Integer, Int: int64(i)}}
		}
		for odd := range rows {
			codes := make([]string, rows)
			codes[odd] = "a row and OTSServerBusy"
			s := &refusing{Getter: sdk, codes: [][]string{codes}}
			got, err := Get(t.Context(), s, "t", key, keys, Options{})
			conformance.MustTrue(t, err == nil && s.requests == 2, "row %d: %d requests, %v", odd, s.requests, err)
			for i, r := range got {
				conformance.True(t, r != nil && r.PrimaryKey.PrimaryKeys[0].Value == int64(i), "row %d was odd: %d: %v", odd, i, r)
			}
		}
	})
}

// panicking is an SDK that panics on every second response, as if a field were missing.
type panicking struct {
	*tablestore.TableStoreClient
	n int
}

func (p *panicking) unread() {
	if p.n++; p.n%2 == 1 {
		panic("index out of range")
	}
}

func (p *panicking) GetRange(r *tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	p.unread()
	return p.TableStoreClient.GetRange(r)
}

func (p *panicking) BatchGetRow(r *tablestore.BatchGetRowRequest) (*tablestore.BatchGetRowResponse, error) {
	p.unread()
	return p.TableStoreClient.BatchGetRow(r)
}

func TestUnreadableResponseIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 6_000
		sdk := &panicking{TableStoreClient: tableOf(t, rows, nil)}
		got := 0
		err := Table(t.Context(), sdk, "t", key, Options{}, func(*Row) error { got++; return nil })
		conformance.True(t, err == nil && got == rows && sdk.n == 4, "%d rows in %d requests, %v", got, sdk.n, err)
		sdk.n = 0
		found, err := Get(t.Context(), sdk, "t", key, [][]table.Value{{{Type: table.Integer, Int: 7}},
			{{Type: table.Integer, Int: rows}}}, Options{})
		conformance.True(t, err == nil && sdk.n == 2 && found[0] != nil &&
			found[0].PrimaryKey.PrimaryKeys[0].Value == int64(7) && found[1] == nil,
			"%v in %d requests, %v", found, sdk.n, err)
	})
}

func TestSpecialBytesQuoteField(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				text := strings.Repeat("\x7f", at) + string([]byte{byte(c)}) + strings.Repeat("-", length-at-1)
				conformance.MustEqual(t, quotes([]byte(text)), strings.ContainsAny(text, ",\"\r\n"), "%q needs quotes", text)
			}
		}
	}
	conformance.True(t, quotes([]byte("\ufeffid")) && !quotes([]byte("id\ufeff")), "a byte order mark")
}

type neverRead struct{}

func (neverRead) GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	return nil, &tablestore.OtsError{Code: "OTSNotEnoughCapacityUnit", Message: "not enough", HttpStatusCode: 403}
}

// TestRefusedReadIsReportedAndAbandoned reads several ranges in parallel from a service that refuses all requests.
func TestRefusedReadIsReportedAndAbandoned(t *testing.T) {
	for _, c := range []struct {
		retryFor time.Duration
		told     int
	}{
		{time.Second, 0}, {3 * time.Second, 1}, {20 * time.Second, 1}, {40 * time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := 0
			waits := NewWaits(func(why string, most time.Duration) {
				told++
				conformance.True(t, why != "" && most == c.retryFor, "told %q, for %v at most", why, most)
			})
			began := time.Now()
			ended := make(chan error)
			const ranges = 4
			for range ranges {
				go func() {
					ended <- conformance.ErrorOf(NewPager(neverRead{}, "t", key,
						Options{RetryFor: c.retryFor, Manner: Manner{Waits: waits}}).Next(t.Context()))
				}()
			}
			for range ranges {
				conformance.Refused(t, <-ended, "", "a page was read")
			}
			took := time.Since(began)
			conformance.True(t, took >= c.retryFor && took <= c.retryFor*3/2+2*time.Second, "%v: %v", c.retryFor, took)
			conformance.Equal(t, told, c.told, "%v: times told", c.retryFor)
		})
	}
}

func TestRangesOfKeys(t *testing.T) {
	key := []table.KeyColumn{{Name: "s", Type: table.String}, {Name: "n", Type: table.Integer},
		{Name: "b", Type: table.Binary}}
	conformance.Golden(t, "ranges.golden", func(input string) string {
		text := conformance.Try(strconv.Unquote(input)).Must(t)
		from, to, err := ParseRange(text, key)
		if err != nil {
			conformance.True(t, from == nil && to == nil, "%s: %v and %v", text, from, to)
			return strings.ToValidUTF8(err.Error(), "?")
		}
		one, oneErr := ParseKey(text, key)
		return fmt.Sprintf("from %s to %s; as one key: %s %v", KeyText(from), KeyText(to), KeyText(one), oneErr)
	})
	from, to, err := ParseRange("9223372036854775807", []table.KeyColumn{{Name: "n", Type: table.Integer}})
	conformance.True(t, err == nil && len(from) == 1 && to == nil, "the last integer: %v to %v, %v", from, to, err)
}

func TestLongestKeyValue(t *testing.T) {
	key := []table.KeyColumn{{Name: "s", Type: table.String}}
	longest := strings.Repeat("x", table.MaxKeyBytes)
	values, err := ParseKey(longest, key)
	conformance.True(t, err == nil && len(values) == 1, "%v, %v", values, err)
	_, _, err = ParseRange("a.."+longest, key)
	conformance.True(t, err == nil, "%v", err)
	for text, want := range map[string]string{longest + "x..": "at most 1024", longest: "no successor"} {
		_, _, err := ParseRange(text, key)
		conformance.Refused(t, err, want, "%.10s", text)
	}
}

// priced is a service whose pages take 20 ms and cost 100 or 1,000 units each.
type priced struct {
	mu           sync.Mutex
	pages, units int
}

func (p *priced) GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	time.Sleep(20 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	cost := 100 + 900*(p.pages%2)
	p.pages++
	p.units += cost
	return &tablestore.GetRangeResponse{
		ConsumedCapacityUnit: &tablestore.ConsumedCapacityUnit{Read: int32(cost)},
		NextStartPrimaryKey:  tabletest.Key("id", int64(p.pages)),
	}, nil
}

func TestGateLimitsAllScansTogether(t *testing.T) {
	for _, scans := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			const rate, seconds = 2000, 60
			s := new(priced)
			gate := NewGate(rate)
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for range scans {
				group.Go(func() {
					p := NewPager(s, "t", key, Options{Manner: Manner{Gate: gate}})
					for {
						if _, err := p.Next(ctx); err != nil {
							return
						}
					}
				})
			}
			time.Sleep(seconds * time.Second)
			stop()
			group.Wait()
			// The cost of the first pages in flight is unknown: one page per scan.
			most := rate*seconds + 1000*scans
			conformance.True(t, s.units <= most && s.units >= rate*seconds*9/10, "%d scans: %d units", scans, s.units)
		})
	}
}
