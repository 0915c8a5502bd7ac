package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

func changing(base http.RoundTripper, change func(res *http.Response, body []byte) []byte) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		res, err := base.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		body = change(res, body)
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return res, nil
	})
}

// describe requests the description of table t over both transports, and returns their errors by name.
func describe(t *testing.T, target Target) map[string]error {
	t.Helper()
	sdk := sdkOf(t, target)
	_, ours := sender(t, t.Context(), target).Post("DescribeTable", text("\n\x01t"))
	_, theirs := sdk.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	return map[string]error{"our connection": ours, "the SDK's": theirs}
}

func tableT(t *testing.T) Target {
	t.Helper()
	target := embedded(t, nil)
	must(t, admin(t, target).Create("t", []table.KeyColumn{{Name: "k", Type: table.String}}, defaults))
	return target
}

func TestFlippedBitsInResponsesAreDetected(t *testing.T) {
	target := tableT(t)
	base := target.Transport
	flips := 0
	for at := 0; ; at++ {
		past := false
		target.Transport = changing(base, func(_ *http.Response, body []byte) []byte {
			if past = at >= 8*len(body); !past {
				body[at/8] ^= 1 << (at % 8)
			}
			return body
		})
		for transport, err := range describe(t, target) {
			conformance.MustTrue(t, past || err != nil && Classify(err) == Ambiguous, "%s, bit %d: %v", transport, at, err)
			conformance.MustTrue(t, !past || err == nil, "%v", err)
		}
		if past {
			break
		}
		flips++
	}
	conformance.True(t, flips >= 100, "only %d bits", flips)
}

func TestResponseIsCheckedAgainstHeaders(t *testing.T) {
	target := tableT(t)
	base := target.Transport
	for name, tt := range map[string]struct {
		change func(h http.Header)
		ok     bool
	}{
		"another checksum":        {func(h http.Header) { h.Set(headerMD5, "1B2M2Y8AsgTpgAmY7PhCfA==") }, false},
		"another date":            {func(h http.Header) { h.Set("X-Ots-Date", "2020-01-01T00:00:00.000Z") }, false},
		"another request's id":    {func(h http.Header) { h.Set(headerRequestID, "other") }, false},
		"another signature":       {func(h http.Header) { h.Set(headerAuthorization, "OTS id:sig") }, false},
		"no signature":            {func(h http.Header) { h.Del(headerAuthorization) }, false},
		"no checksum":             {func(h http.Header) { h.Del(headerMD5) }, false},
		"no headers, as always":   {func(h http.Header) { clear(h) }, false},
		"one more from the proxy": {func(h http.Header) { h.Set("Via", "proxy") }, true},
	} {
		target.Transport = changing(base, func(res *http.Response, body []byte) []byte {
			res.Header = res.Header.Clone()
			tt.change(res.Header)
			return body
		})
		for transport, err := range describe(t, target) {
			conformance.True(t, (err == nil) == tt.ok && (err == nil || Classify(err) == Ambiguous), "%s %s", name, transport)
		}
	}
}

func TestMissingChecksumIsDetectedAfterOthers(t *testing.T) {
	target := tableT(t)
	target.AcceptUnsigned = true
	strip := false
	target.Transport = changing(target.Transport, func(res *http.Response, body []byte) []byte {
		if strip {
			res.Header = res.Header.Clone()
			res.Header.Del(headerMD5)
			res.Header.Del(headerAuthorization)
		}
		return body
	})
	traffic := new(Traffic)
	sdk := conformance.Try(New(t.Context(), target, traffic)).Must(t)
	ask := func() error {
		return conformance.ErrorOf(sdk.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"}))
	}
	strip = true
	err := ask()
	conformance.True(t, err == nil && traffic.Unchecked.Load() == 1, "stripped: %v, %d", err, traffic.Unchecked.Load())
	strip = false
	err = ask()
	conformance.True(t, err == nil && traffic.Checked.Load() == 1, "%v, %d answers checked", err, traffic.Checked.Load())
	strip = true
	err = ask()
	conformance.True(t, err != nil && Classify(err) == Ambiguous, "one answer without a checksum: %v", err)
}

func TestResponsesToRequestsSignedWithV4AreChecked(t *testing.T) {
	target := tableT(t)
	target.Credentials = common.CreateByCredentials(target.Credentials.GetCredentials(), "cn-hangzhou")
	for transport, err := range describe(t, target) {
		conformance.Equal(t, err, nil, "%s", transport)
	}
}

type rotating struct{ n int }

func (r *rotating) GetCredentials() common.Credentials {
	r.n++
	return &common.DefaultCredentials{AccessKeyID: fmt.Sprint("id", r.n), AccessKeySecret: "secret"}
}

func TestKeysOfARequestAreFoundAfterRotation(t *testing.T) {
	keys := &signedWith{CredentialsProvider: &rotating{}}
	of := func(id string) http.Header { return http.Header{headerAccessKeyID: {id}} }
	for range 6 {
		keys.GetCredentials()
	}
	for id, want := range map[string]bool{"id1": false, "id3": true, "id6": true, "id7": false} {
		got := keys.keysOf(of(id))
		conformance.True(t, (got != nil) == want && (!want || got.GetAccessKeyID() == id), "%s: %v", id, got)
	}
	keys.CredentialsProvider = &common.DefaultCredentialsProvider{AccessKeyID: "id6", AccessKeySecret: "new"}
	keys.GetCredentials()
	conformance.True(t, keys.keysOf(of("id6")).GetAccessKeySecret() == "new" && keys.keysOf(of("id3")) != nil,
		"a secret that was renewed: %v", keys.last)
	keys.last[1] = &common.V4Credentials{AccessKeyID: "v4", SigningDate: "20240101"}
	yesterday, today := of("v4"), of("v4")
	yesterday.Set(headerSignDate, "20231231")
	today.Set(headerSignDate, "20240101")
	conformance.True(t, keys.keysOf(yesterday) == nil && keys.keysOf(today) != nil, "keys of V4 hold for another day")
}

func TestRowsWithWrongChecksumAreRefused(t *testing.T) {
	target := tableT(t)
	target.AcceptUnsigned = true
	sdk := sdkOf(t, target)
	change := &tablestore.PutRowChange{TableName: "t", PrimaryKey: new(tablestore.PrimaryKey)}
	change.PrimaryKey.AddPrimaryKeyColumn("k", "one")
	change.AddColumn("c", "value")
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	must(t, conformance.ErrorOf(sdk.PutRow(&tablestore.PutRowRequest{PutRowChange: change})))
	damage := false
	target.Transport = changing(target.Transport, func(res *http.Response, body []byte) []byte {
		// Damage rows as if inside the service: the response's own checksum is right.
		if damage {
			res.Header = http.Header{}
			body = bytes.Replace(body, []byte("value"), []byte("valve"), 1)
		}
		return body
	})
	sdk = sdkOf(t, target)
	get := func() error {
		c := &tablestore.SingleRowQueryCriteria{TableName: "t", PrimaryKey: change.PrimaryKey, MaxVersion: 1}
		return conformance.ErrorOf(sdk.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: c}))
	}
	scan := func() error {
		c := criteria()
		c.StartPrimaryKey, c.EndPrimaryKey = new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
		c.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue("k")
		c.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue("k")
		return conformance.ErrorOf(sdk.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: c}))
	}
	batch := func() error {
		c := &tablestore.MultiRowQueryCriteria{TableName: "t", MaxVersion: 1}
		c.AddRow(change.PrimaryKey)
		all := []*tablestore.MultiRowQueryCriteria{c}
		return conformance.ErrorOf(sdk.BatchGetRow(&tablestore.BatchGetRowRequest{MultiRowQueryCriteria: all}))
	}
	for name, read := range map[string]func() error{"GetRow": get, "GetRange": scan, "BatchGetRow": batch} {
		damage = false
		conformance.Equal(t, read(), nil, "%s", name)
		damage = true
		err := read()
		conformance.True(t, Classify(err) == Ambiguous && strings.Contains(Describe(err), "checksum"), "%s: %v", name, err)
	}
}

func TestFlippedBitsInRowsAreDetected(t *testing.T) {
	var row plainbuffer.Row
	name := plainbuffer.NewName("name")
	row.Begin(nil)
	row.Key(&name, table.Value{Type: table.String, Bytes: []byte("key")})
	row.CellAt(&name, table.Value{Type: table.Double, Double: 1.5}, 7)
	row.Cell(&name, table.Value{Type: table.Boolean, Int: 1})
	rows := row.End()
	rows = append(rows, rows[4:]...)
	n, err := plainbuffer.CheckRows(rows)
	conformance.MustTrue(t, n == 2 && err == nil, "%d rows, %v", n, err)
	for at := range 8 * len(rows) {
		rows[at/8] ^= 1 << (at % 8)
		conformance.Refused(t, conformance.ErrorOf(plainbuffer.CheckRows(rows)), "", "bit %d of byte %d", at%8, at/8)
		rows[at/8] ^= 1 << (at % 8)
	}
	for n := 1; n < len(rows); n++ {
		rows, err := plainbuffer.CheckRows(rows[:n])
		conformance.True(t, err != nil || rows == 1 || n == 4, "the first %d bytes are %d rows", n, rows)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 307, 308, 399} {
		reached := 0
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path+"?token=secret", status)
		}))
		target := Target{Endpoint: web.URL, Instance: "i", AcceptUnsigned: true,
			Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "s", SecurityToken: "token"}}
		sdk := sdkOf(t, target)
		errs := describe(t, target)
		_, errs["DeleteTable"] = sdk.DeleteTable(&tablestore.DeleteTableRequest{TableName: "t"})
		_, errs["ListTable"] = sdk.ListTable()
		for what, err := range errs {
			text := Describe(err)
			conformance.True(t, Classify(err) == Ambiguous &&
				strings.Contains(text, fmt.Sprintf("HTTP %d: moved to %s", status, other.URL)) && !strings.Contains(text, "secret"),
				"HTTP %d, %s: %v", status, what, text)
		}
		conformance.True(t, reached <= 0, "HTTP %d: %d requests went to another host", status, reached)
		other.Close()
		web.Close()
	}
	plan := &faults.Plan{Only: func(string) bool { return true },
		Decide: func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Redirect} }}
	err := admin(t, embedded(t, plan)).Drop("t")
	conformance.True(t, !errors.Is(err, ErrNoTable) && strings.Contains(fmt.Sprint(err), "moved to"), "dropping: %v", err)
}

type said struct{ body []byte }

func (s *said) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s.body)),
		ContentLength: int64(len(s.body)), Request: r}, nil
}

func rangeClient(t testing.TB, s *said) *tablestore.TableStoreClient {
	t.Helper()
	return sdkOf(t, via(s))
}

func rangeAnswer(rows, next []byte) []byte {
	out := []byte{10, 6, 10, 4, 8, 7, 16, 0}
	out = protowire.AppendBytes(append(out, 18), rows)
	if next != nil {
		out = protowire.AppendBytes(append(out, 26), next)
	}
	return out
}

func criteria() *tablestore.RangeRowQueryCriteria {
	pk := new(tablestore.PrimaryKey)
	pk.AddPrimaryKeyColumn("k", int64(1))
	return &tablestore.RangeRowQueryCriteria{TableName: "t", StartPrimaryKey: pk, EndPrimaryKey: pk, MaxVersion: 1}
}

var drawnNames = []string{"a", "b", "city", "长名", strings.Repeat("n", 255), "a2"}

func drawValue(r *rand.Rand) table.Value {
	text := make([]byte, r.IntN(40))
	for i := range text {
		text[i] = byte(r.IntN(256))
	}
	switch r.IntN(5) {
	case 0:
		return table.Value{Type: table.Integer, Int: int64(r.Uint64())}
	case 1:
		return table.Value{Type: table.Double, Double: math.Float64frombits(r.Uint64() &^ (1 << 62))}
	case 2:
		return table.Value{Type: table.Boolean, Int: int64(r.IntN(2))}
	case 3:
		return table.Value{Type: table.Binary, Bytes: text}
	}
	return table.Value{Type: table.String, Bytes: text}
}

func drawRows(r *rand.Rand, n int) (rows []byte) {
	keys := 1 + r.IntN(4)
	for i := range n {
		var row plainbuffer.Row
		row.Begin(nil)
		for k := range keys {
			name := plainbuffer.NewName(fmt.Sprintf("k%d", k))
			row.Key(&name, [...]table.Value{{Type: table.Integer, Int: int64(i)}, {Type: table.String, Bytes: []byte("é")},
				{Type: table.Binary, Bytes: []byte{0, 1}}}[(k+i)%3])
		}
		for _, c := range drawnNames {
			name := plainbuffer.NewName(c)
			for range r.IntN(3) {
				if r.IntN(4) == 0 {
					row.Cell(&name, drawValue(r))
				} else {
					row.CellAt(&name, drawValue(r), r.Int64())
				}
			}
		}
		b := row.End()
		if i > 0 {
			b = b[4:]
		}
		rows = append(rows, b...)
	}
	return rows
}

// rowsIn reads a page and decodes its rows into m or, if that is nil, into new memory.
func rowsIn(s Ranger, c *tablestore.RangeRowQueryCriteria, m *PageMemory) (*tablestore.GetRangeResponse, error) {
	m = cmp.Or(m, new(PageMemory))
	page, err := GetPacked(s, c, m)
	if err == nil {
		page.Rows, err = m.Unpacked()
	}
	return page, err
}

func TestPagesEqualSDK(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := new(said)
	c := rangeClient(t, s)
	memory := new(PageMemory)
	var next plainbuffer.Row
	for range 60 {
		n := r.IntN(30)
		name := plainbuffer.NewName("k0")
		next.Begin(nil)
		next.Key(&name, table.Value{Type: table.Integer, Int: int64(n)})
		s.body = rangeAnswer(drawRows(r, n), next.End())
		want := conformance.Try(c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: criteria()})).Must(t)
		for _, m := range []*PageMemory{nil, memory, memory} {
			got := conformance.Try(rowsIn(c, criteria(), m)).Must(t)
			conformance.MustTrue(t, len(got.Rows) == n && (n == 0 || reflect.DeepEqual(want.Rows, got.Rows)),
				"%d rows differ from the SDK's:\n%v\n%v", n, want.Rows, got.Rows)
			conformance.MustTrue(t, reflect.DeepEqual(want.NextStartPrimaryKey, got.NextStartPrimaryKey) &&
				*want.ConsumedCapacityUnit == *got.ConsumedCapacityUnit,
				"next key or units differ: %+v, %+v", want, got)
		}
	}
}

// Rows that were not decoded into the caller's memory do not change when later pages are read.
func TestRowsSurviveLaterPages(t *testing.T) {
	c := rangeClient(t, &said{rangeAnswer(drawRows(rand.New(rand.NewPCG(3, 4)), 20), nil)})
	first := conformance.Try(rowsIn(c, criteria(), nil)).Must(t)
	was := fmt.Sprint(first.Rows[7].Columns[0], first.Rows[7].PrimaryKey)
	for range 5 {
		must(t, conformance.ErrorOf(rowsIn(c, criteria(), nil)))
	}
	conformance.Equal(t, fmt.Sprint(first.Rows[7].Columns[0], first.Rows[7].PrimaryKey), was, "a row became")
}

func TestDamagedPagesAreRefused(t *testing.T) {
	rows := drawRows(rand.New(rand.NewPCG(5, 6)), 3)
	s := new(said)
	c := rangeClient(t, s)
	for i := range rows {
		damaged := bytes.Clone(rows)
		damaged[i] ^= 0x10
		s.body = rangeAnswer(damaged, nil)
		conformance.Refused(t, conformance.ErrorOf(rowsIn(c, criteria(), nil)), "", "byte %d of %d changed", i, len(rows))
		s.body = rangeAnswer(rows[:i], nil)
		res, err := rowsIn(c, criteria(), nil)
		conformance.MustTrue(t, err != nil || len(res.Rows) != 3, "cut at byte %d of %d: no error", i, len(rows))
	}
}

// With reused memory, the number of allocations for a page does not depend on its rows and cells.
func TestPageDoesNotAllocatePerRow(t *testing.T) {
	s := new(said)
	c := rangeClient(t, s)
	memory := new(PageMemory)
	allocations := func(rows int) float64 {
		s.body = rangeAnswer(drawRows(rand.New(rand.NewPCG(7, 8)), rows), nil)
		return testing.AllocsPerRun(10, func() { must(t, conformance.ErrorOf(rowsIn(c, criteria(), memory))) })
	}
	few, many := allocations(10), allocations(2000)
	conformance.True(t, many <= few+20, "%v allocations for 2,000 rows, %v for 10", many, few)
}

// foreign is a client that was not made by New, so the SDK decodes its rows.
type foreign struct{ c *tablestore.TableStoreClient }

func (f foreign) GetRange(r *tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	return f.c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: r.RangeRowQueryCriteria})
}

func TestPackedRowsEqualPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := new(said)
	c := rangeClient(t, s)
	memory, one := new(PageMemory), new(PageMemory)
	hasher := plainbuffer.NewHasher()
	memory.Sums(hasher)
	for range 60 {
		n := r.IntN(30)
		s.body = rangeAnswer(drawRows(r, n), nil)
		want := conformance.Try(rowsIn(c, criteria(), nil)).Must(t)
		for _, ranger := range []Ranger{c, foreign{c}} {
			got, err := GetPacked(ranger, criteria(), memory)
			conformance.MustTrue(t, err == nil && len(got.Rows) <= 0 && memory.Packed.Len() == n &&
				*got.ConsumedCapacityUnit == *want.ConsumedCapacityUnit,
				"%d packed rows of %d, %d others: %v", memory.Packed.Len(), n, len(got.Rows), err)
			for i := range n {
				row, err := one.Unpack(memory.Packed.Row(i))
				conformance.MustTrue(t, err == nil && reflect.DeepEqual(row, want.Rows[i]), "row %d: %v, %v", i, row, err)
				var key []byte
				for _, k := range row.PrimaryKey.PrimaryKeys {
					key = table.AppendKey(key, ValueOf(k.Value))
				}
				sum, _ := hasher.Row(plainbuffer.CellsOf(memory.Packed.Row(i)))
				conformance.MustTrue(t, memory.Packed.Sum(i) == sum && string(memory.Packed.Key(i)) == string(key),
					"row %d has the sum %x and the key %x, want %x and %x", i, memory.Packed.Sum(i), memory.Packed.Key(i), sum, key)
			}
		}
	}
}

// Rows that cannot be in a table are decoded by the SDK and then packed.
func TestImpossibleRowsAreDecodedBySDK(t *testing.T) {
	k, f := plainbuffer.NewName("k"), plainbuffer.NewName("f")
	s := new(said)
	c := rangeClient(t, s)
	memory := new(PageMemory)
	begin := func() (row plainbuffer.Row) {
		row.Begin(nil)
		row.Key(&k, table.Value{Type: table.Integer, Int: 1})
		return row
	}
	row := begin()
	row.Cell(&f, table.Value{Type: table.Boolean, Int: 2})
	s.body = rangeAnswer(row.End(), nil)
	must(t, conformance.ErrorOf(GetPacked(c, criteria(), memory)))
	cells := plainbuffer.CellsOf(memory.Packed.Row(0))
	conformance.True(t, cells.Next() && string(cells.Name()) == "f" && cells.Value().Type == table.Boolean &&
		cells.Value().Int == 1, "a boolean of 2 is %x", cells.Content)
	row = begin()
	row.Increment(&f, 5)
	s.body = rangeAnswer(row.End(), nil)
	must(t, conformance.ErrorOf(GetPacked(c, criteria(), memory)))
	cells = plainbuffer.CellsOf(memory.Packed.Row(0))
	conformance.True(t, cells.Next() && cells.Op == plainbuffer.Set, "a cell that adds came as %d", cells.Op)
	odd := &tablestore.Row{PrimaryKey: criteria().StartPrimaryKey,
		Columns: []*tablestore.AttributeColumn{{ColumnName: "c", Value: int32(1)}}}
	for _, want := range []string{"column c has a value of type int32", "key column d is of type double"} {
		conformance.Refused(t, conformance.ErrorOf(PackRow(plainbuffer.Names{}, odd)), want, "a row")
		err := (&page{PageMemory: memory}).pack([]*tablestore.Row{odd})
		conformance.Refused(t, err, want, "a page")
		odd.PrimaryKey.AddPrimaryKeyColumn("d", 1.5)
	}
}
