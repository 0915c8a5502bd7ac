package encode

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

var schema = &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.String}},
	Columns: []table.Column{{Name: "id"}, {Name: "a"}, {Name: "b"}}}

func str(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

func TestRowsEqualSDKInAllModes(t *testing.T) {
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", "k")
	put := &tablestore.PutRowChange{PrimaryKey: key}
	put.AddColumn("a", "x")
	update := &tablestore.UpdateRowChange{PrimaryKey: key}
	update.PutColumn("a", "x")
	deleting := &tablestore.UpdateRowChange{PrimaryKey: key}
	deleting.PutColumn("a", "x")
	deleting.DeleteColumn("b")
	remove := &tablestore.DeleteRowChange{PrimaryKey: key}
	for name, tt := range map[string]struct {
		mode       table.Mode
		deleteNull bool
		want       []byte
		size       int
	}{
		"absent, not deleted":       {table.Update, true, update.Serialize(), 5},
		"put":                       {table.Put, false, put.Serialize(), 5},
		"put has nothing to delete": {table.Put, true, put.Serialize(), 5},
		"update":                    {table.Update, false, update.Serialize(), 5},
		"update that deletes nulls": {table.Update, true, deleting.Serialize(), 6},
		"delete":                    {table.Delete, false, remove.Serialize(), 3},
	} {
		b := new(table.Block)
		values := []table.Value{str("k"), str("x"), {Absent: strings.HasPrefix(name, "absent")}}
		why := New(schema, tt.mode, tt.deleteNull).Append(b, values, nil, table.Span{}, nil)
		isRow(t, name, b, why, tt.want, tt.size)
	}
	e, b := New(schema, table.Changes, false), new(table.Block)
	modes := []table.Mode{table.Put, table.Update, table.Delete, table.Put}
	for _, m := range modes {
		e.As(m)
		conformance.MustEqual(t, e.Append(b, []table.Value{str("k"), str("x"), {}}, nil, table.Span{}, nil), nil, "%v", m)
	}
	for i, want := range [][]byte{put.Serialize(), deleting.Serialize(), remove.Serialize(), put.Serialize()} {
		got := table.Ref{Block: b, Index: int32(i)}
		conformance.True(t, bytes.Equal(got.Body(), want) && got.Row().Mode(table.Changes) == modes[i], "row %d: %x", i,
			got.Body())
	}
}

// isRow checks the bytes, the accounted size and the ordering key of a block's row, whose key must be k.
func isRow(t *testing.T, name string, b *table.Block, why *table.Reason, want []byte, size int) {
	t.Helper()
	conformance.MustEqual(t, why, nil, "%s", name)
	r := table.Ref{Block: b}
	key := table.AppendKey(nil, str("k"))
	conformance.True(t, bytes.Equal(r.Body(), want) && r.Row().Size() == size && bytes.Equal(r.Key(), key),
		"%s: size %d, want %d; key %x, want %x\ngot  %x\nwant %x", name, r.Row().Size(), size, r.Key(), key, r.Body(), want)
}

func TestRefusedRowLeavesBlockUnchanged(t *testing.T) {
	b := new(table.Block)
	e := New(schema, table.Update, false)
	good := []table.Value{str("k"), str("x"), str("y")}
	conformance.MustEqual(t, e.Append(b, good, nil, table.Span{}, nil), nil, "reason")
	before := len(b.Data)
	huge := table.Value{Type: table.String, Bytes: make([]byte, table.MaxValueBytes+1)}
	for _, tt := range []struct {
		values []table.Value
		code   string
	}{
		{[]table.Value{{}, str("x"), str("y")}, table.CodeNullKey},
		{[]table.Value{{Type: table.String, Bytes: make([]byte, table.MaxKeyBytes+1)}, str("x"), {}}, table.CodeKeyTooLong},
		{[]table.Value{str("k"), str("x"), huge}, table.CodeValueTooLong},
		{[]table.Value{str("k"), {}, {}}, table.CodeNoCells},
	} {
		why := e.Append(b, tt.values, nil, table.Span{}, nil)
		conformance.True(t, why != nil && why.Code == tt.code, "got %v, want %s", why, tt.code)
		conformance.True(t, len(b.Data) == before && len(b.Rows) == 1, "%s left %d bytes", tt.code, len(b.Data))
	}
	why := New(schema, table.Put, false).Append(b, []table.Value{str(""), {}, {}}, nil, table.Span{}, nil)
	conformance.True(t, why == nil, "a put of a key only, and an empty key value: %v", why)
}

type recipe struct {
	key    string
	values [2]table.Value
	stamps []int64
	cells  []Cell // their names are replaced with the encoder's
}

var tooLongText = make([]byte, table.MaxValueBytes+1)

func drawRecipe(t *rapid.T, mode table.Mode) (r recipe) {
	values := []table.Value{{}, {Absent: true}, {Type: table.Integer, Int: 1}, {Type: table.Integer, Int: 2}}
	if mode != table.Increment {
		values = append(values, []table.Value{str(""), str("1"), str("a\x00b"), integer(math.MinInt64), double(1),
			double(math.Copysign(0, -1)), double(math.NaN()), {Type: table.Boolean}, {Type: table.Boolean, Int: 1},
			{Type: table.Binary}, {Type: table.Binary, Bytes: []byte("1")}, {Type: table.String, Bytes: tooLongText}}...)
	}
	value := func() table.Value { return values[rapid.IntRange(0, len(values)-1).Draw(t, "value")] }
	r.key, r.values = rapid.SampledFrom([]string{"k", ""}).Draw(t, "key"), [2]table.Value{value(), value()}
	if rapid.Bool().Draw(t, "stamped") {
		r.stamps = rapid.SliceOfN(rapid.SampledFrom([]int64{-1, 5, 6, table.MaxTimestamp}), 3, 3).Draw(t, "stamps")
	}
	for range rapid.IntRange(0, 2).Draw(t, "cells") {
		r.cells = append(r.cells, Cell{NewName(rapid.SampledFrom([]string{"c", "d"}).Draw(t, "name")), value(),
			rapid.SampledFrom([]int64{-1, 5}).Draw(t, "at")})
	}
	return r
}

func TestAllBodyFormsHaveTheSameChecks(t *testing.T) {
	hasher := plainbuffer.NewHasher()
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]table.Mode{table.Put, table.Update, table.Increment, table.Delete}).Draw(t, "mode")
		deleteNull := rapid.Bool().Draw(t, "delete nulls")
		reserve := rapid.SampledFrom([]int{0, table.MaxRowBytes - 40, table.MaxRowBytes}).Draw(t, "reserve")
		bodies := func(r recipe) (all [5][]byte, refused bool) {
			reason := ""
			for body := WholeBody; body <= KeptBody; body++ {
				e := New(schema, mode, deleteNull)
				e.Body, e.Reserve, e.StampBytes = body, reserve, 8
				if body >= SummedBody {
					e.Sums(hasher, body)
				}
				names := map[string]*Name{"c": NewName("c"), "d": NewName("d")}
				for _, c := range r.cells {
					e.Cells = append(e.Cells, Cell{names[c.Name.text], c.Value, c.At})
				}
				b := new(table.Block)
				why := e.Append(b, []table.Value{str(r.key), r.values[0], r.values[1]}, r.stamps, table.Span{}, []byte("record"))
				text := ""
				if why != nil {
					text = why.Error()
				}
				switch {
				case body > 0 && text != reason:
					t.Fatalf("body %d: %q, and with its bytes %q", body, text, reason)
				case why != nil && len(b.Data)+len(b.Rows) > 0:
					t.Fatalf("body %d: a refused row leaves %d bytes", body, len(b.Data))
				}
				if reason = text; why != nil {
					continue
				}
				ref := table.Ref{Block: b}
				if string(ref.Record()) != "record" || !bytes.Equal(ref.Key(), table.AppendKey(nil, str(r.key))) {
					t.Fatalf("body %d: key %x, record %q", body, ref.Key(), ref.Record())
				}
				all[body] = ref.Body()
			}
			return all, reason != ""
		}
		// summed returns the body that a sum must agree with.
		summed := func(r recipe, all [5][]byte) []byte {
			if mode != table.Put || r.stamps != nil || len(r.cells) > 0 {
				return all[WholeBody]
			}
			sum, _ := hasher.Row(plainbuffer.CellsOf(all[WholeBody]))
			return binary.LittleEndian.AppendUint64(nil, sum)
		}
		for range 30 {
			first := drawRecipe(t, mode)
			second, other := first, drawRecipe(t, mode)
			switch rapid.IntRange(0, 3).Draw(t, "what is different") {
			case 0:
				second.values[0] = other.values[0]
			case 1:
				second.values[1] = other.values[1]
			case 2:
				second.stamps = other.stamps
			case 3:
				second.cells = other.cells
			}
			a, refused := bodies(first)
			conformance.MustTrue(t, refused || bytes.Equal(a[SummedBody], summed(first, a)) && len(a[WholeBody]) > SumBytes,
				"%+v\n%x is %x", first, a[SummedBody], a[WholeBody])
			if !refused {
				unkept, err := New(schema, mode, deleteNull).Unkept([]table.Value{str(first.key)}, a[KeptBody])
				if sum, _ := SumOf(a[KeptBody]); err != nil || !bytes.Equal(unkept, a[WholeBody]) ||
					len(a[SummedBody]) == SumBytes && !bytes.Equal(sum, a[SummedBody]) {
					t.Fatalf("%+v\n%x was kept as %x: %v", first, unkept, a[KeptBody], err)
				}
				for n := 1 + SumBytes; n < len(a[KeptBody]) && a[KeptBody][0] == keptTag; n++ {
					_, err := New(schema, mode, deleteNull).Unkept([]table.Value{str(first.key)}, a[KeptBody][:n])
					conformance.MustTrue(t, err != nil, "%x is read", a[KeptBody][:n])
				}
			}
			b, refusedToo := bodies(second)
			if refused || refusedToo {
				continue
			}
			conformance.MustTrue(t, bytes.Equal(a[WholeBody], b[WholeBody]) == bytes.Equal(a[HashedBody], b[HashedBody]) &&
				len(a[HashedBody]) == 8 && len(a[NoBody]) == 0,
				"%+v\n%+v\n%x\n%x", first, second, a, b)
		}
	})
}

// keyOnly is the schema of rows whose attributes are all in Cells.
var keyOnly = &table.Schema{Table: "t", Key: schema.Key, Columns: schema.Columns[:1:1]}

// appendOwn appends a row with the key k and the given Cells. It replaces their names with the encoder's.
func appendOwn(e *Encoder, cells ...Cell) (*table.Block, *table.Reason) {
	b := new(table.Block)
	names := map[*Name]*Name{}
	for _, c := range cells {
		if names[c.Name] == nil {
			names[c.Name] = NewName(c.Name.text)
		}
		c.Name = names[c.Name]
		e.Cells = append(e.Cells, c)
	}
	return b, e.Append(b, []table.Value{str("k")}, nil, table.Span{}, nil)
}

func integer(n int64) table.Value  { return table.Value{Type: table.Integer, Int: n} }
func double(f float64) table.Value { return table.Value{Type: table.Double, Double: f} }

func TestRowsWithOwnCellsEqualSDK(t *testing.T) {
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", "k")
	put := &tablestore.PutRowChange{PrimaryKey: key}
	put.AddColumnWithTimestamp("a", int64(1), 1000)
	put.AddColumnWithTimestamp("a", int64(2), 2000)
	put.AddColumn("b", "x")
	update := &tablestore.UpdateRowChange{PrimaryKey: key}
	update.PutColumn("b", "x")
	update.DeleteColumn("c")
	count := &tablestore.UpdateRowChange{PrimaryKey: key}
	count.IncrementColumn("a", 1)
	remove := &tablestore.DeleteRowChange{PrimaryKey: key}
	a, b, c := NewName("a"), NewName("b"), NewName("c")
	versions := []Cell{{a, integer(1), 1000}, {a, integer(2), 2000}, {b, str("x"), -1}, {Name: c}}
	for name, tt := range map[string]struct {
		mode       table.Mode
		deleteNull bool
		cells      []Cell
		want       []byte
		size       int
	}{
		"put":                       {table.Put, false, versions, put.Serialize(), 3 + 17 + 17 + 2},
		"put has nothing to delete": {table.Put, true, versions, put.Serialize(), 3 + 17 + 17 + 2},
		"update that deletes nulls": {table.Update, true, versions[2:], update.Serialize(), 3 + 2 + 1},
		"increment":                 {table.Increment, false, []Cell{{a, integer(1), 1000}}, count.Serialize(), 3 + 9},
		"delete":                    {table.Delete, false, versions, remove.Serialize(), 3},
	} {
		block, why := appendOwn(New(keyOnly, tt.mode, tt.deleteNull), tt.cells...)
		isRow(t, name, block, why, tt.want, tt.size)
	}
}

func TestOwnCellsRespectLimits(t *testing.T) {
	text := func(n int) table.Value { return table.Value{Type: table.String, Bytes: make([]byte, n)} }
	a, b := NewName("a"), NewName("b")
	many := func(n int) (cells []Cell) {
		for i := range n {
			cells = append(cells, Cell{a, integer(1), int64(i)})
		}
		return cells
	}
	const left = table.MaxRowBytes - len("id") - len("k") - len("a") - len("b")
	one, big := integer(1), Cell{a, text(table.MaxValueBytes), -1}
	rest := func(more int) Cell { return Cell{b, text(left - table.MaxValueBytes + more), -1} }
	window := Encoder{Window: func() (from, to int64) { return 10_000, 20_000 }}
	for name, tt := range map[string]struct {
		encoder Encoder
		mode    table.Mode
		cells   []Cell
		code    string
	}{
		"the longest value":  {cells: []Cell{big}},
		"a longer one":       {cells: []Cell{{a, text(table.MaxValueBytes + 1), -1}}, code: table.CodeValueTooLong},
		"the largest row":    {cells: []Cell{big, rest(0)}},
		"a larger one":       {cells: []Cell{big, rest(1)}, code: table.CodeRowTooLarge},
		"a timestamp counts": {cells: []Cell{big, {b, rest(0).Value, 5}}, code: table.CodeRowTooLarge},
		"so does an added one": {encoder: Encoder{StampBytes: 1}, cells: []Cell{{a, big.Value, 7}, rest(-8)},
			code: table.CodeRowTooLarge},
		"the most versions": {cells: many(table.MaxColumns)},
		"one more":          {cells: many(table.MaxColumns + 1), code: table.CodeTooManyColumns},
		"an addition's cell": {encoder: Encoder{ReserveCells: 1}, cells: many(table.MaxColumns),
			code: table.CodeTooManyColumns},
		"room for an addition": {encoder: Encoder{Reserve: 1}, cells: []Cell{big, rest(0)}, code: table.CodeRowTooLarge},
		"two without a time":   {cells: []Cell{{a, one, -1}, {b, one, -1}, {a, one, -2}}, code: table.CodeSameCell},
		"two of one stamp": {cells: []Cell{{a, one, 5}, {a, one, 7}, {a, one, 6}, {a, one, 6}},
			code: table.CodeSameCell},
		"two of the last time":  {cells: []Cell{{a, one, 5}, {a, one, 7}, {a, one, 7}}, code: table.CodeSameCell},
		"with and without":      {cells: []Cell{{a, one, 5}, {a, one, -1}}},
		"a value and none":      {cells: []Cell{{a, one, 5}, {Name: a, At: 6}}, code: table.CodeSameCell},
		"an invalid timestamp":  {cells: []Cell{{a, one, table.MaxTimestamp}}, code: table.CodeRange},
		"a timestamp too old":   {encoder: window, cells: []Cell{{a, one, 9_000}}, code: table.CodeRange},
		"a timestamp that fits": {encoder: window, cells: []Cell{{a, one, 10_000}}},
		"a put of nothing":      {},
		"an update of nothing":  {mode: table.Update, cells: []Cell{{Name: a}}, code: table.CodeNoCells},
		"only integers add":     {mode: table.Increment, cells: []Cell{{a, str("1"), -1}}, code: table.CodeType},
		"a value is added once": {mode: table.Increment, cells: []Cell{{a, one, 5}, {a, one, 6}}, code: table.CodeSameCell},
		"an update of too many": {mode: table.Update, cells: append(many(table.MaxColumns), Cell{b, one, -1}),
			code: table.CodeTooManyColumns},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(keyOnly, tt.mode, false)
			e.Reserve, e.ReserveCells, e.StampBytes, e.Window = tt.encoder.Reserve, tt.encoder.ReserveCells,
				tt.encoder.StampBytes, tt.encoder.Window
			block, why := appendOwn(e, tt.cells...)
			conformance.True(t, why == nil && tt.code == "" || why != nil && why.Code == tt.code, "%v, want %q", why, tt.code)
			conformance.True(t, why == nil || len(block.Data)+len(block.Rows) == 0,
				"%v left %d bytes and %d rows", why, len(block.Data), len(block.Rows))
		})
	}
}

// TestPackedRowsEqualEncodedRows tests values of every type, versions, missing and unordered columns, and refused rows.
func TestPackedRowsEqualEncodedRows(t *testing.T) {
	values := []table.Value{integer(0), integer(math.MinInt64), integer(math.MaxInt64), {Type: table.Boolean},
		{Type: table.Boolean, Int: 1}, double(0), double(math.Copysign(0, -1)), double(0.1), double(math.MaxFloat64),
		str(""), str("1"), str("é,\"\n"), {Type: table.Binary}, {Type: table.Binary, Bytes: []byte{0xff}}}
	refused := []table.Value{double(math.NaN()), double(math.Inf(-1)), str("\xff"), str(string(tooLongText))}
	fast, slow := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		e, made := New(keyOnly, table.Put, false), New(keyOnly, table.Put, false)
		reserve := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, table.MaxRowBytes - 60, table.MaxRowBytes}).Draw(t, "reserve")
		cells := rapid.SampledFrom([]int{0, 0, 0, table.MaxColumns - 3}).Draw(t, "reserved cells")
		for _, e := range []*Encoder{e, made} {
			e.Reserve, e.ReserveCells, e.StampBytes, e.Window = reserve, cells, 8, func() (int64, int64) { return 1000, 5000 }
		}
		names := map[string]*Name{}
		b, want := new(table.Block), new(table.Block)
		for range rapid.IntRange(1, 10).Draw(t, "rows") {
			columns := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "b", "c", "d", "e", "f", "g", "z", "never"}), 0,
				5).Draw(t, "columns")
			if rapid.IntRange(0, 9).Draw(t, "sorted") > 0 {
				slices.Sort(columns)
			}
			key := rapid.SampledFrom([]string{"", "k"}).Draw(t, "key")
			keyName := rapid.SampledFrom([]string{"id", "id", "id", "id", "id", "id", "ID"}).Draw(t, "name of the key")
			bad := false // the row has a value that the service refuses
			var r plainbuffer.Row
			r.Begin(nil)
			of := plainbuffer.NewName(keyName)
			r.Key(&of, str(key))
			made.Cells = []Cell{}
			at := int64(4999)
			for i, c := range columns {
				v := rapid.SampledFrom(values).Draw(t, "value")
				if rapid.IntRange(0, 20).Draw(t, "refused") == 0 {
					v, bad = rapid.SampledFrom(refused).Draw(t, "which"), true
				}
				if at = at - 1; i > 0 && columns[i-1] != c || rapid.IntRange(0, 9).Draw(t, "other time") == 0 {
					at = rapid.SampledFrom([]int64{-1, 0, 999, 1000, 4999, 5000, 4000, 4000, 4000, 4000, 4001, 4002, 3000, 3001, 2000,
						1999}).Draw(t, "timestamp")
				}
				name := plainbuffer.NewName(c)
				if at < 0 {
					r.Cell(&name, v)
				} else {
					r.CellAt(&name, v, at)
				}
				if names[c] == nil {
					names[c] = NewName(c)
				}
				made.Cells = append(made.Cells, Cell{names[c], v, at})
			}
			row := plainbuffer.WithoutHeader(r.End())
			span := table.Span{Record: uint32(len(b.Rows))}
			was := len(b.Data)
			if !e.AppendPacked(b, []table.Value{str(key)}, span, row, []byte("record"),
				func(name []byte) bool { return string(name) != "never" }) {
				conformance.MustTrue(t, len(b.Data) == was && len(b.Rows) == len(want.Rows), "%x was not appended", row)
				slow++
				continue
			}
			fast++
			why := made.Append(want, []table.Value{str(key)}, nil, span, []byte("record"))
			conformance.MustTrue(t, why == nil && !bad && keyName == "id" && !slices.Contains(columns, "never"), "%x", row)
			conformance.MustTrue(t, bytes.Equal(b.Data, want.Data) && slices.Equal(b.Rows, want.Rows),
				"as it came\n%x %+v, made\n%x %+v", b.Data, b.Rows, want.Data, want.Rows)
		}
	})
	conformance.True(t, fast != 0 && slow != 0, "%d rows were appended as they came, %d were not", fast, slow)
}
