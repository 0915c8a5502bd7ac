package scan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
)

// TestKeysCompareAsTheirOrderingKeys: rows of the table, cut points and what is kept of a scan are compared by ordering
// keys elsewhere.
func TestKeysCompareAsTheirOrderingKeys(t *testing.T) {
	column := func(t *rapid.T, kind int) any {
		switch kind {
		case 0:
			return rapid.Int64().Draw(t, "integer")
		case 1:
			return rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'é'}), 0, 4, -1).Draw(t, "string")
		}
		return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 4).Draw(t, "binary")
	}
	const mixed = 3
	rapid.Check(t, func(t *rapid.T) {
		var keys [2]tablestore.PrimaryKey
		var encoded [2][]byte
		kinds := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 3).Draw(t, "types")
		if rapid.Bool().Draw(t, "columns of two types") {
			kinds = append(kinds, mixed)
		}
		for i := range keys {
			for _, kind := range kinds {
				if kind == mixed {
					kind = 2 * i // an integer in the one key, binary in the other
				}
				v := column(t, kind)
				keys[i].PrimaryKeys = append(keys[i].PrimaryKeys, &tablestore.PrimaryKeyColumn{Value: v})
				encoded[i] = table.AppendKey(encoded[i], client.ValueOf(v))
			}
		}
		if got, want := compare(&keys[0], &keys[1]), bytes.Compare(encoded[0], encoded[1]); cmp.Compare(got, 0) != want {
			t.Fatalf("compare is %d, the ordering keys give %d", got, want)
		}
	})
}

func TestPackedRowsAreThoseOfAScan(t *testing.T) {
	sdk := tableOf(t, 11_000, nil) // three pages
	var rows []*Row
	o := Options{From: []table.Value{{Type: table.Integer, Int: 17}}, To: []table.Value{{Type: table.Integer, Int: 10_900}}}
	must(t, Table(t.Context(), sdk, "t", key, o, func(r *Row) error { rows = append(rows, r); return nil }))
	if first := rows[0].PrimaryKey.PrimaryKeys[0].Value; first != int64(17) || len(rows) != 10_883 {
		t.Errorf("%d rows from %v", len(rows), first)
	}
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
	if err != nil || n != len(rows) {
		t.Errorf("%d rows of %d: %v", n, len(rows), err)
	}
}

// answering gives the same rows for every request.
type answering struct {
	rows []*Row
	next *tablestore.PrimaryKey
}

func (a *answering) GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	return &tablestore.GetRangeResponse{Rows: a.rows, NextStartPrimaryKey: a.next}, nil
}

// A page that is not the answer to its request is refused in either form.
func TestPackedPagesAreCheckedAsOthers(t *testing.T) {
	pk := func(values ...any) *tablestore.PrimaryKey {
		var columns []any
		for i, v := range values {
			columns = append(columns, fmt.Sprint("k", i), v)
		}
		return tabletest.Key(columns...)
	}
	two := []table.KeyColumn{{Name: "k0", Type: table.Integer}, {Name: "k1", Type: table.String}}
	o := Options{From: []table.Value{{Type: table.Integer, Int: 5}}, To: []table.Value{{Type: table.Integer, Int: 9}}, RetryFor: time.Nanosecond}
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
		enough := errors.New("enough")
		count := 0
		each := func() error {
			if count++; count > 10 {
				return enough
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := Table(ctx, a, "t", two, o, func(*Row) error { return each() })
		packed := Packed(ctx, a, "t", two, o, new(PackedPage), func(int) error { return each() })
		cancel()
		if (err == nil) != c.ok || (packed == nil) != c.ok || errors.Is(err, errOutside) != errors.Is(packed, errOutside) {
			t.Errorf("%s: %v, packed %v", name, err, packed)
		}
	}
}
