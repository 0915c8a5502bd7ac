package client

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/plainbuffer"
)

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
