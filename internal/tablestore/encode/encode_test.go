package encode

import (
	"bytes"
	"encoding/binary"
	"math"
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

func TestRowsAreTheSDKsBytesInEveryMode(t *testing.T) {
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
		"put":                       {table.Put, false, put.Serialize(), 5},
		"put has nothing to delete": {table.Put, true, put.Serialize(), 5},
		"update":                    {table.Update, false, update.Serialize(), 5},
		"update that deletes nulls": {table.Update, true, deleting.Serialize(), 6},
		"delete":                    {table.Delete, false, remove.Serialize(), 3},
	} {
		b := new(table.Block)
		why := New(schema, tt.mode, tt.deleteNull).Append(b, []table.Value{str("k"), str("x"), {}}, nil, table.Span{}, nil)
		isRow(t, name, b, why, tt.want, tt.size)
	}
}

// isRow checks the bytes, the accounted size and the ordering key of a row with the key k.
func isRow(t *testing.T, name string, b *table.Block, why *table.Reason, want []byte, size int) {
	t.Helper()
	conformance.MustEqual(t, why, nil, "%s", name)
	r := table.Ref{Block: b}
	if key := table.AppendKey(nil, str("k")); !bytes.Equal(r.Body(), want) || r.Row().Size() != size || !bytes.Equal(r.Key(), key) {
		t.Errorf("%s: %d accounted bytes, want %d; ordering key %x, want %x\ngot  %x\nwant %x", name, r.Row().Size(), size, r.Key(), key, r.Body(), want)
	}
}

func TestARefusedRowLeavesTheBlockUnchanged(t *testing.T) {
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
		if why == nil || why.Code != tt.code {
			t.Errorf("got %v, want %s", why, tt.code)
		}
		if len(b.Data) != before || len(b.Rows) != 1 {
			t.Errorf("%s left %d bytes and %d rows", tt.code, len(b.Data), len(b.Rows))
		}
	}
	if why := New(schema, table.Put, false).Append(b, []table.Value{str(""), {}, {}}, nil, table.Span{}, nil); why != nil {
		t.Errorf("a put of a key only, and an empty key value: %v", why)
	}
}

// recipe is what a row is made of.
type recipe struct {
	key    string
	values [2]table.Value
	stamps []int64
	cells  []Cell // with names of no encoder
}

var tooLongText = make([]byte, table.MaxValueBytes+1)

func drawRecipe(t *rapid.T, mode table.Mode) (r recipe) {
	values := []table.Value{{}, {Absent: true}, {Type: table.Integer, Int: 1}, {Type: table.Integer, Int: 2}}
	if mode != table.Increment {
		values = append(values, str(""), str("1"), str("a\x00b"), table.Value{Type: table.Integer, Int: math.MinInt64},
			table.Value{Type: table.Double, Double: math.Copysign(0, -1)}, table.Value{Type: table.Double, Double: math.NaN()}, table.Value{Type: table.Boolean}, table.Value{Type: table.Binary}, table.Value{Type: table.Binary, Bytes: []byte("1")},
			table.Value{Type: table.Double, Double: 1}, table.Value{Type: table.Boolean, Int: 1}, table.Value{Type: table.String, Bytes: tooLongText})
	}
	value := func() table.Value { return values[rapid.IntRange(0, len(values)-1).Draw(t, "value")] }
	r.key, r.values = rapid.SampledFrom([]string{"k", ""}).Draw(t, "key"), [2]table.Value{value(), value()}
	if rapid.Bool().Draw(t, "stamped") {
		r.stamps = rapid.SliceOfN(rapid.SampledFrom([]int64{-1, 5, 6, table.MaxTimestamp}), 3, 3).Draw(t, "stamps")
	}
	for range rapid.IntRange(0, 2).Draw(t, "cells") {
		r.cells = append(r.cells, Cell{NewName(rapid.SampledFrom([]string{"c", "d"}).Draw(t, "name")), value(), rapid.SampledFrom([]int64{-1, 5}).Draw(t, "at")})
	}
	return r
}

func TestRowsWithoutTheirBytesAreCheckedAndComparedAsThose(t *testing.T) {
	s := &table.Schema{Table: "t", Key: keyOnly.Key, Columns: []table.Column{{Name: "id"}, {Name: "a"}, {Name: "b"}}}
	hasher := plainbuffer.NewHasher()
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]table.Mode{table.Put, table.Update, table.Increment, table.Delete}).Draw(t, "mode")
		deleteNull := rapid.Bool().Draw(t, "delete nulls")
		reserve := rapid.SampledFrom([]int{0, table.MaxRowBytes - 40, table.MaxRowBytes}).Draw(t, "reserve")
		bodies := func(r recipe) (all [4][]byte, refused bool) {
			reason := ""
			for body := WholeBody; body <= SummedBody; body++ {
				e := New(s, mode, deleteNull)
				e.Body, e.Reserve, e.StampBytes = body, reserve, 8
				if body == SummedBody {
					e.Sums(hasher)
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
		// summed is what a sum stands for, by the bytes.
		summed := func(r recipe, all [4][]byte) []byte {
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
			if !refused && (!bytes.Equal(a[SummedBody], summed(first, a)) || len(a[WholeBody]) <= SumBytes) {
				t.Fatalf("%+v\n%x is %x", first, a[SummedBody], a[WholeBody])
			}
			b, refusedToo := bodies(second)
			if refused || refusedToo {
				continue
			}
			if bytes.Equal(a[WholeBody], b[WholeBody]) != bytes.Equal(a[HashedBody], b[HashedBody]) || len(a[HashedBody]) != 8 || len(a[NoBody]) != 0 {
				t.Fatalf("%+v\n%+v\n%x\n%x", first, second, a, b)
			}
		}
	})
}
