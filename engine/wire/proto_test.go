package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/conformance"
)

// TestShortFieldsDecodeLikeOthers decodes fields of all types and lengths, complete, truncated and changed.
func TestShortFieldsDecodeLikeOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	short := 0
	for range 200_000 {
		var b []byte
		id := protowire.Number(1 + r.IntN(20))
		switch r.IntN(3) {
		case 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, id, protowire.VarintType), r.Uint64()>>r.IntN(64))
		case 1:
			b = protowire.AppendBytes(protowire.AppendTag(b, id, protowire.BytesType), make([]byte, r.IntN(1<<r.IntN(16))))
		case 2:
			b = protowire.AppendFixed32(protowire.AppendTag(b, id, protowire.Fixed32Type), 7)
		}
		b = append(b, make([]byte, r.IntN(3))...)
		switch r.IntN(4) {
		case 0:
			b = b[:r.IntN(len(b)+1)]
		case 1:
			b[r.IntN(min(len(b), 4))] = byte(r.Uint32())
		}
		var quick, slow field
		n := quick.short(b)
		if n == 0 {
			continue
		}
		short++
		if want := slow.any(b); n != want || !reflect.DeepEqual(quick, slow) {
			t.Fatalf("% x: %+v of %d bytes, want %+v of %d", b[:min(len(b), 20)], quick, n, slow, want)
		}
	}
	conformance.True(t, short >= 10_000, "only %d fields are short", short)
}

func TestAllCodesHaveStatusAndMessage(t *testing.T) {
	want := map[string]Error{
		"OTSAuthFailed":                  {Status: 403, Message: "The user has no privilege to access the instance."},
		"OTSNoPermissionAccess":          {Status: 403, Message: "You have no permission to access the requested resource."},
		"OTSRequestBodyTooLarge":         {Status: 413, Message: "The size of POST data is too large."},
		"OTSMethodNotAllowed":            {Status: 405, Message: "Only POST method for requests is supported."},
		"OTSParameterInvalid":            {Status: 400, Message: "Invalid parameter."},
		"OTSUnsupportedOperation":        {Status: 400, Message: "This operation is not supported."},
		"OTSInvalidPK":                   {Status: 400, Message: "Primary key schema mismatch."},
		"OTSConditionCheckFail":          {Status: 403, Message: "Condition check failed."},
		"OTSObjectNotExist":              {Status: 404, Message: "Requested table does not exist."},
		"OTSObjectAlreadyExist":          {Status: 409, Message: "Requested table already exists."},
		"OTSInternalServerError":         {Status: 500, Message: "Internal server error."},
		"OTSServerBusy":                  {Status: 503, Message: "Server is busy."},
		"OTSPartitionUnavailable":        {Status: 503, Message: "The partition is not available."},
		"OTSTimeout":                     {Status: 503, Message: "Operation timeout."},
		"OTSServerUnavailable":           {Status: 503, Message: "Server is not available."},
		"OTSNotEnoughCapacityUnit":       {Status: 403, Message: "Remaining capacity unit is not enough."},
		"OTSCapacityUnitExhausted":       {Status: 403, Message: "Capacity unit is not enough."},
		"OTSRowOperationConflict":        {Status: 409, Message: "Data is being modified by the other request."},
		"OTSTableNotReady":               {Status: 404, Message: "The table is not ready."},
		"OTSQuotaExhausted":              {Status: 403, Message: "Number of tables exceeded the quota."},
		"OTSForbiddenUpdateCapacityUnit": {Status: 400, Message: "Your instance is forbidden to update capacity unit."},
		"OTSRequestTimeout":              {Status: 408, Message: "Request timeout."},

		"OTSTooFrequentReservedThroughputAdjustment": {Status: 403, Message: "Capacity unit adjustment is too frequent."},
	}
	for code, w := range want {
		if got := Fail(code); got.Code != code || got.Status != w.Status || got.Message != w.Message {
			t.Errorf("%s: got %d %q, want %d %q", code, got.Status, got.Message, w.Status, w.Message)
		}
	}
	if got := Fail("OTSNew"); got.Status != 503 || got.Code != "OTSNew" || got.Message == "" {
		t.Errorf("a code that nobody knows: %+v", got)
	}
}

func pk(name string, typ ValueType, value ...byte) Cell {
	return Cell{Name: []byte(name), Type: typ, Value: value}
}

// FuzzCreateTable looks for requests whose check panics, or that pass although their partitions are not in order.
func FuzzCreateTable(f *testing.F) {
	f.Add(unhex(f, vCreate))
	ranged := unhex(f, vCreate)
	for _, p := range [][]byte{{0x0a, 1, 9, 0x12, 6, 3, 1, 0, 0, 0, 'm'}, {0x0a, 6, 3, 1, 0, 0, 0, 'm', 0x12, 1, 10}} {
		ranged = append(append(ranged, 0x22, byte(len(p))), p...)
	}
	f.Add(ranged)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeCreateTable(b)
		if err != nil {
			return
		}
		if r.Check(true) != nil {
			return
		}
		conformance.MustTrue(t, len(r.Bounds) < MaxTablePartitions, "%d bounds", len(r.Bounds))
		for i := 1; i < len(r.Bounds); i++ {
			conformance.MustTrue(t, CompareBounds(&r.Bounds[i-1], &r.Bounds[i]) < 0, "bounds %+v", r.Bounds)
		}
		for i := range r.Bounds {
			typ, value, rest, ok := ReadVariant(AppendVariant(nil, &r.Bounds[i]))
			conformance.MustTrue(t, ok && len(rest) == 0 && typ == r.Bounds[i].Type &&
				string(value) == string(r.Bounds[i].Value), "bound %+v does not come back", r.Bounds[i])
		}
	})
}

// streamOf returns rows with one key column, and with equal or different attribute columns.
func streamOf(rows, columns int, own bool) []byte {
	stream := AppendHeader(nil)
	for r := range rows {
		var cells []Cell
		for c := range columns {
			name := fmt.Sprintf("c%d", c)
			if own {
				name = fmt.Sprintf("c%d_%d", c, r)
			}
			cells = append(cells, Cell{Name: []byte(name), Type: Boolean, Value: []byte{1}, Stamped: true})
		}
		stream = AppendRow(stream, []Cell{pk("k", String, []byte(fmt.Sprintf("%05d", r))...)}, cells)
	}
	return stream
}

func TestOversizedMatrixIsReplacedByRows(t *testing.T) {
	key := []KeyColumn{{Name: "k", Type: KeyString}}
	for _, v := range []struct {
		rows, columns int
		own           bool
		want          BlockType
	}{{1000, 20, false, SimpleRowMatrix}, {1000, 4, true, SimpleRowMatrix}, {1000, 20, true, PlainBuffer},
		{0, 0, false, SimpleRowMatrix}} {
		stream := streamOf(v.rows, v.columns, v.own)
		if v.rows == 0 {
			stream = nil
		}
		r := &GetRange{Block: SimpleRowMatrix, bulk: true}
		body, err := r.Matrix(key, stream)
		conformance.True(t, err == nil && r.Block == v.want, "%+v: a block of type %d (%v), want %d", v, r.Block, err, v.want)
		conformance.True(t, len(body) <= len(stream)+maxMatrixCells+1000, "%+v: %d bytes of %d", v, len(body), len(stream))
		_, after := r.Around(Capacity{}, 0, len(body), nil)
		conformance.Equal(t, BlockType(after[len(after)-1]), v.want, "%+v: the answer ends with %x", v, after)
	}
}

func TestRowWriterEqualsAppendRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w RowWriter
	var got, want []byte
	draw := func(stamped bool) Cell {
		c := Cell{Name: fmt.Appendf(nil, "%0*d", 1+rng.IntN(12), rng.IntN(3)), Stamped: stamped}
		switch rng.IntN(3) {
		case 0:
			c.Type, c.Value = Integer, binary.LittleEndian.AppendUint64(nil, rng.Uint64())
		case 1:
			c.Type, c.Value = Boolean, []byte{1}
		default:
			c.Type, c.Value = []ValueType{String, Binary}[rng.IntN(2)], bytes.Repeat([]byte{byte(rng.Int())}, rng.IntN(40))
		}
		if stamped {
			c.Timestamp = []int64{0, 1, -1, rng.Int64(), 1_700_000_000_000}[rng.IntN(5)]
		}
		return c
	}
	for range 2000 {
		var key, cells []Cell
		for range rng.IntN(4) {
			key = append(key, draw(false))
		}
		for range rng.IntN(6) {
			cells = append(cells, draw(true))
		}
		want = AppendRow(want, key, cells)
		w.Begin(got)
		for i := range key {
			w.Key(&key[i])
		}
		for i := range cells {
			w.Cell(cells[i].Name, cells[i].Type, cells[i].Value, cells[i].Timestamp)
		}
		got = w.End()
		conformance.MustTrue(t, bytes.Equal(got, want), "%x, want %x", got[max(0, len(got)-80):], want[max(0, len(want)-80):])
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	conformance.MustEqual(t, err, nil, "error")
	return b
}

// Test vectors of rows, numbered as in the description of Tablestore's semantics.
const (
	v05 = "7500000001030403000000706b3105060000000301000000610a1909ea"
	v06 = "7500000001030403000000706b3105060000000301000000610a190809ed"
	v13 = "7500000001030403000000706b3105060000000301000000610a190203040100000069050900000000fbffffffffffffff0adf030401000000640509000000010000000000000a400afe03040100000074050200000002010ae103040100000066050200000002000a9203040100000073050b000000030600000068c3a96c6c6f0a5003040100000062050800000007030000000102030ab20304020000006573050500000003000000000a400304020000006562050500000007000000000a78092a"
	v14 = "7500000001030403000000706b3105060000000301000000610a190203040100000076050800000003030000006e6577070168e5cf8b0100000a0c03040100000076050800000003030000006f6c64070068e5cf8b0100000a2f0956"
	v15 = "7500000001030403000000706b3105060000000301000000610a19020304010000006105090000000001000000000000000a1e0304010000006206010ad8030401000000630603070068e5cf8b0100000a0e0304010000006e0509000000000a0000000000000006040aa9096c"
	v16 = "7500000001030403000000706b3105060000000301000000610a1902030401000000760509000000000200000000000000070168e5cf8b0100000a35030401000000760509000000000100000000000000070068e5cf8b0100000a20094e01030403000000706b3105060000000301000000620a100957"

	vCreate = "0a180a02743112070a03756964100212090a037365711001180112060a04080010001a0d08ffffffffffffffffff011001"
)

func TestSlicedCRCEqualsBytewiseCRC(t *testing.T) {
	f := func(start byte, b []byte) bool {
		want := start
		for _, c := range b {
			want = crc8Byte(want, c)
		}
		return crc8(start, b) == want
	}
	conformance.Equal(t, quick.Check(f, nil), nil, "error")
}

func FuzzRow(f *testing.F) {
	for _, v := range []string{v05, v06, v13, v14, v15, v16} {
		f.Add(unhex(f, v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Decoder
		row, err := d.Row(b)
		if err != nil || row.Delete {
			return
		}
		for i := range row.Cells {
			if row.Cells[i].Op != PutCell {
				return // answers cannot contain operations
			}
		}
		again := AppendRow(AppendHeader(nil), row.Key, row.Cells)
		conformance.True(t, bytes.Equal(again, b) || bytes.Contains(b, []byte{tagExtension}), "from %x: %x", b, again)
	})
}

// FuzzMatrix converts any stream of rows to a matrix, which must contain every row of the stream.
func FuzzMatrix(f *testing.F) {
	for _, v := range []string{v05, v13, v14, v16} {
		f.Add(unhex(f, v))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		var d Decoder
		row, err := d.Row(stream)
		if err != nil || row.Delete {
			return
		}
		for i := range row.Cells {
			if c := &row.Cells[i]; c.Op != PutCell || c.Type == InfMin || c.Type == InfMax {
				return
			}
		}
		key := make([]KeyColumn, len(row.Key))
		for i := range row.Key {
			key[i].Name = string(row.Key[i].Name)
		}
		matrix, err := (&GetRange{}).Matrix(key, AppendRow(AppendHeader(nil), row.Key, row.Cells))
		conformance.MustEqual(t, err, nil, "error")
		n := len(matrix)
		conformance.Equal(t, matrix[n-1], crc8(0, matrix[:n-1]), "the checksum of %x is wrong", matrix)
		rest := matrix[binary.LittleEndian.Uint32(matrix[4:])+1:] // after the row's tag
		for i := range row.Key {
			typ, value, after, ok := ReadVariant(rest)
			conformance.MustTrue(t, ok && typ == row.Key[i].Type && bytes.Equal(value, row.Key[i].Value),
				"key column %d of %x is %d %x", i, matrix, typ, value)
			rest = after
		}
	})
}
