package client

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// said answers every request with the same body.
type said struct{ body []byte }

func (s *said) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s.body)), ContentLength: int64(len(s.body)), Request: r}, nil
}

func rangeClient(t testing.TB, s *said) *tablestore.TableStoreClient {
	t.Helper()
	c, err := New(t.Context(), Target{Endpoint: "http://example.com", Instance: "i", AcceptUnsigned: true, Transport: s,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}, nil)
	must(t, err)
	return c
}

// rangeAnswer is an answer with these rows and the key of the next one.
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

// drawRows makes rows of one to four key columns; the columns of rows differ.
func drawRows(r *rand.Rand, n int) (rows []byte) {
	keys := 1 + r.IntN(4)
	for i := range n {
		var row plainbuffer.Row
		row.Begin(nil)
		for k := range keys {
			name := plainbuffer.NewName(fmt.Sprintf("k%d", k))
			row.Key(&name, [...]table.Value{{Type: table.Integer, Int: int64(i)}, {Type: table.String, Bytes: []byte("é")}, {Type: table.Binary, Bytes: []byte{0, 1}}}[(k+i)%3])
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

func TestPagesAreThoseOfTheSDK(t *testing.T) {
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
		want, err := c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: criteria()})
		must(t, err)
		for _, m := range []*PageMemory{nil, memory, memory} {
			got, err := GetRange(c, criteria(), m)
			must(t, err)
			if len(got.Rows) != n || n > 0 && !reflect.DeepEqual(want.Rows, got.Rows) {
				t.Fatalf("%d rows differ from the SDK's:\n%v\n%v", n, want.Rows, got.Rows)
			}
			if !reflect.DeepEqual(want.NextStartPrimaryKey, got.NextStartPrimaryKey) || *want.ConsumedCapacityUnit != *got.ConsumedCapacityUnit {
				t.Fatalf("next key or units differ: %+v, %+v", want, got)
			}
		}
	}
}

// Rows that were handed out without memory of the caller's stay as they are.
func TestPagesKeepTheirRows(t *testing.T) {
	s := &said{rangeAnswer(drawRows(rand.New(rand.NewPCG(3, 4)), 20), nil)}
	c := rangeClient(t, s)
	first, err := GetRange(c, criteria(), nil)
	must(t, err)
	was := fmt.Sprint(first.Rows[7].Columns[0], first.Rows[7].PrimaryKey)
	for range 5 {
		_, err := GetRange(c, criteria(), nil)
		must(t, err)
	}
	conformance.Equal(t, fmt.Sprint(first.Rows[7].Columns[0], first.Rows[7].PrimaryKey), was, "a row became")
}

// What is damaged is refused, whichever byte it is.
func TestDamagedPagesAreRefused(t *testing.T) {
	rows := drawRows(rand.New(rand.NewPCG(5, 6)), 3)
	s := new(said)
	c := rangeClient(t, s)
	for i := range rows {
		damaged := bytes.Clone(rows)
		damaged[i] ^= 0x10
		s.body = rangeAnswer(damaged, nil)
		if _, err := GetRange(c, criteria(), nil); err == nil {
			t.Fatalf("byte %d of %d changed: no error", i, len(rows))
		}
		s.body = rangeAnswer(rows[:i], nil)
		if res, err := GetRange(c, criteria(), nil); err == nil && len(res.Rows) == 3 {
			t.Fatalf("cut at byte %d of %d: no error", i, len(rows))
		}
	}
}

// Cells that no row of a table has are left to the SDK.
func TestOddRowsAreLeftToTheSDK(t *testing.T) {
	name, k := plainbuffer.NewName("c"), plainbuffer.NewName("k")
	var row plainbuffer.Row
	row.Begin(nil)
	row.Key(&k, table.Value{Type: table.Integer, Int: 1})
	row.Increment(&name, 1)
	s := &said{rangeAnswer(row.End(), nil)}
	c := rangeClient(t, s)
	want, err := c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: criteria()})
	must(t, err)
	got, err := GetRange(c, criteria(), nil)
	if err != nil || !reflect.DeepEqual(want.Rows, got.Rows) {
		t.Errorf("%v: %v, want %v", err, got, want.Rows)
	}
}

// A page in memory that is used again takes the same few allocations, however many rows and cells it has.
func TestAPageAllocatesNothingForARow(t *testing.T) {
	s := new(said)
	c := rangeClient(t, s)
	memory := new(PageMemory)
	allocations := func(rows int) float64 {
		s.body = rangeAnswer(drawRows(rand.New(rand.NewPCG(7, 8)), rows), nil)
		return testing.AllocsPerRun(10, func() {
			_, err := GetRange(c, criteria(), memory)
			must(t, err)
		})
	}
	if few, many := allocations(10), allocations(2000); many > few+20 {
		t.Errorf("%v allocations for 2,000 rows, %v for 10", many, few)
	}
}

// foreign is a client that New has not made: its rows are the SDK's.
type foreign struct{ c *tablestore.TableStoreClient }

func (f foreign) GetRange(r *tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	return f.c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: r.RangeRowQueryCriteria})
}

func TestPackedRowsAreThoseOfPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := new(said)
	c := rangeClient(t, s)
	memory, one := new(PageMemory), new(PageMemory)
	hasher := plainbuffer.NewHasher()
	memory.Sums(hasher)
	for range 60 {
		n := r.IntN(30)
		s.body = rangeAnswer(drawRows(r, n), nil)
		want, err := GetRange(c, criteria(), nil)
		must(t, err)
		for _, ranger := range []Ranger{c, foreign{c}} {
			got, err := GetPacked(ranger, criteria(), memory)
			if err != nil || len(got.Rows) > 0 || memory.Packed.Len() != n || *got.ConsumedCapacityUnit != *want.ConsumedCapacityUnit {
				t.Fatalf("%d packed rows of %d, %d others: %v", memory.Packed.Len(), n, len(got.Rows), err)
			}
			for i := range n {
				row, err := one.Unpack(memory.Packed.Row(i))
				if err != nil || !reflect.DeepEqual(row, want.Rows[i]) {
					t.Fatalf("row %d is %v, want %v: %v", i, row, want.Rows[i], err)
				}
				var key []byte
				for _, k := range row.PrimaryKey.PrimaryKeys {
					key = table.AppendKey(key, ValueOf(k.Value))
				}
				if sum, _ := hasher.Row(plainbuffer.CellsOf(memory.Packed.Row(i))); memory.Packed.Sum(i) != sum || string(memory.Packed.Key(i)) != string(key) {
					t.Fatalf("row %d has the sum %x and the key %x, want %x and %x", i, memory.Packed.Sum(i), memory.Packed.Key(i), sum, key)
				}
			}
		}
	}
}

// Rows that no table has are packed as the SDK makes them.
func TestOddRowsAreNotPackedAsTheyCame(t *testing.T) {
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
	_, err := GetPacked(c, criteria(), memory)
	must(t, err)
	if cells := plainbuffer.CellsOf(memory.Packed.Row(0)); !cells.Next() || string(cells.Name()) != "f" || cells.Value().Type != table.Boolean || cells.Value().Int != 1 {
		t.Errorf("a boolean of 2 is %x", cells.Content)
	}
	row = begin()
	row.Increment(&f, 5)
	s.body = rangeAnswer(row.End(), nil)
	_, err = GetPacked(c, criteria(), memory)
	must(t, err)
	if cells := plainbuffer.CellsOf(memory.Packed.Row(0)); !cells.Next() || cells.Op != plainbuffer.Set {
		t.Errorf("a cell that adds came as %d", cells.Op)
	}
}
