package keyexpr

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// boundKey is where a bound sorts among ordering keys. A limit is as the least or the greatest of its column.
func boundKey(b *Bounds, bound []BoundValue, n int) (key []byte) {
	for _, v := range bound {
		switch v.Limit {
		case limitMin:
			return key
		case limitMax:
			return append(key, bytes.Repeat([]byte{0xff}, 64)...)
		}
		value := v.value
		if v.many {
			value.Bytes = append([]byte(fmt.Sprintf(b.Prefix, n)), value.Bytes...)
		}
		key = table.AppendKey(key, value)
	}
	return key
}

func TestTheBoundsHoldTheRowsOfTheirValuesAndNoOthers(t *testing.T) {
	env := Env{Columns: inputs, SaltColumns: []string{"CardID", "SellerID"}}
	for _, tt := range []struct {
		key     []string
		column  string
		with    []string // columns whose value must be the same too
		ranges  int
		filters bool
	}{
		{[]string{"CardID", "OrderNumber"}, "CardID", nil, 1, false},
		{[]string{"CardID", "OrderNumber"}, "OrderNumber", []string{"CardID"}, 1, false},
		{[]string{"SellerID", "OrderNumber"}, "SellerID", nil, 1, false},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "DeviceID", nil, 1, false},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "SellerID", []string{"DeviceID"}, 1, true},
		{[]string{`k=pad(DeviceID,6)+":"+SellerID+":"+text(CardID)`, "OrderNumber"}, "CardID", []string{"DeviceID", "SellerID"}, 1, true},
		{[]string{`k=splice(",", pad(DeviceID,6), SellerID, CardID)`, "OrderNumber"}, "SellerID", []string{"DeviceID"}, 1, false},
		{[]string{`k=splice(",", SellerID, pad(DeviceID,6)+Name)`}, "DeviceID", []string{"SellerID"}, 1, false},
		{[]string{`k=SellerID+"x"+Name`, "CardID"}, "SellerID", nil, 1, true},
		{[]string{`k=md5(OrderNumber,1)+pad(OrderNumber,3)`, "CardID"}, "OrderNumber", nil, 1, false},
		{[]string{`k=md5(OrderNumber,1)+pad(CardID,3)`, "OrderNumber"}, "CardID", nil, 16, false},
		{[]string{`k=bucket(CardID,3)`, "CardID", "OrderNumber"}, "CardID", nil, 1, false},
		{[]string{`k=bucket(OrderNumber,3)`, "CardID"}, "CardID", nil, 3, false},
		{[]string{`s=salt(12)`, "CardID", "SellerID"}, "CardID", nil, 12, false},
		{[]string{`k=md5(SellerID,2)+SellerID`, "OrderNumber"}, "SellerID", nil, 1, false},
		{[]string{"at=CardID - CardID % 10", "CardID"}, "CardID", nil, 1, false},
		{[]string{"at=desc(CardID)", "OrderNumber"}, "CardID", nil, 1, false},
	} {
		d := design(t, env, tt.key...)
		rapid.Check(t, func(rt *rapid.T) {
			var rows [][]table.Value
			for range rapid.IntRange(1, 30).Draw(rt, "rows") {
				rows = append(rows, row(map[string]table.Value{
					"CardID": num(rapid.Int64Range(0, 25).Draw(rt, "card")), "DeviceID": num(rapid.Int64Range(0, 3).Draw(rt, "device")),
					"OrderNumber": num(rapid.Int64Range(0, 3).Draw(rt, "order")),
					"SellerID":    str(rapid.SampledFrom([]string{"a", "ab", "a:", "ax", "b", "国"}).Draw(rt, "seller")),
					"Name":        str(rapid.SampledFrom([]string{"", "a", "x", "xx"}).Draw(rt, "name"))}))
			}
			given := Given{}
			for i, in := range inputs {
				given[in.Name] = rows[0][i]
			}
			b := d.Bounds(tt.column, given)
			if b == nil || b.Ranges != tt.ranges || b.Filters != tt.filters {
				rt.Fatalf("%q: %s: %+v", tt.key, tt.column, b)
			}
			for _, r := range rows {
				var key []byte
				for _, p := range d.Programs {
					v, why := p.NewEvaluator().Eval(r)
					if why != nil {
						return // the row is rejected
					}
					key = table.AppendKey(key, v)
				}
				inside := false
				for i := range b.Ranges {
					start := boundKey(b, b.Start, i)
					if b.Row {
						inside = inside || bytes.Equal(key, start)
						continue
					}
					inside = inside || bytes.Compare(key, start) >= 0 && bytes.Compare(key, boundKey(b, b.End, i)) < 0
				}
				want := true
				for i, in := range inputs {
					if in.Name == tt.column || slices.Contains(tt.with, in.Name) {
						want = want && shownValue(r[i]) == shownValue(given[in.Name])
					}
				}
				if inside != want && !(inside && tt.filters) {
					rt.Fatalf("%q: %s given %v: a row with %v is inside: %v\n%s", tt.key, tt.column, b.Given, r, inside, b.Python)
				}
			}
		})
	}
}

func TestBoundsAreWrittenInGoAndPython(t *testing.T) {
	env := Env{Columns: inputs}
	given := Given{"DeviceID": num(200004), "CardID": num(7), "OrderNumber": num(12), "SellerID": str("中\"")}
	for _, tt := range []struct {
		key            []string
		column         string
		golang, python string
	}{
		{[]string{`key=pad(DeviceID,6)+":"+SellerID`, "OrderNumber"}, "DeviceID", `start := new(tablestore.PrimaryKey)
start.AddPrimaryKeyColumn("key", "200004:")
start.AddPrimaryKeyColumnWithMinValue("OrderNumber")
end := new(tablestore.PrimaryKey)
end.AddPrimaryKeyColumn("key", "200004;")
end.AddPrimaryKeyColumnWithMinValue("OrderNumber")`, `inclusive_start = [("key", "200004:"), ("OrderNumber", INF_MIN)]
exclusive_end = [("key", "200004;"), ("OrderNumber", INF_MIN)]`},
		{[]string{"CardID", "seq:auto"}, "CardID", `start := new(tablestore.PrimaryKey)
start.AddPrimaryKeyColumn("CardID", int64(7))
start.AddPrimaryKeyColumnWithMinValue("seq")
end := new(tablestore.PrimaryKey)
end.AddPrimaryKeyColumn("CardID", int64(7))
end.AddPrimaryKeyColumnWithMaxValue("seq")`, `inclusive_start = [("CardID", 7), ("seq", INF_MIN)]
exclusive_end = [("CardID", 7), ("seq", INF_MAX)]`},
		{[]string{"k=md5(CardID,2)+pad(OrderNumber,6)", "CardID"}, "OrderNumber", `for i := range 256 {
	start := new(tablestore.PrimaryKey)
	start.AddPrimaryKeyColumn("k", fmt.Sprintf("%02x", i) + "000012")
	start.AddPrimaryKeyColumnWithMinValue("CardID")
	end := new(tablestore.PrimaryKey)
	end.AddPrimaryKeyColumn("k", fmt.Sprintf("%02x", i) + "000012")
	end.AddPrimaryKeyColumnWithMaxValue("CardID")
	// GetRange from start to end
}`, `for i in range(256):
    inclusive_start = [("k", "%02x" % i + "000012"), ("CardID", INF_MIN)]
    exclusive_end = [("k", "%02x" % i + "000012"), ("CardID", INF_MAX)]`},
		{[]string{"SellerID"}, "SellerID", `key := new(tablestore.PrimaryKey)
key.AddPrimaryKeyColumn("SellerID", "\u4e2d\"")`, `primary_key = [("SellerID", "\u4e2d\"")]`},
	} {
		d := Design{Inputs: inputs}
		for _, text := range tt.key {
			if name, auto := strings.CutSuffix(text, ":auto"); auto {
				d.Columns, d.Programs = append(d.Columns, Column{Name: name, Auto: true}), append(d.Programs, nil)
				continue
			}
			one := design(t, env, text)
			d.Columns, d.Programs = append(d.Columns, one.Columns...), append(d.Programs, one.Programs...)
		}
		b := d.Bounds(tt.column, given)
		if b == nil || b.Go != tt.golang || b.Python != tt.python {
			t.Errorf("%q: %+v", tt.key, b)
			continue
		}
		x := Explain(d, [][]table.Value{row(nil)}, given)
		if text := x.Text(); !strings.Contains(text, strings.Split(tt.python, "\n")[0]) || len(x.Key) != len(tt.key) || len(x.Examples[0].Key) != len(tt.key) {
			t.Errorf("%q:\n%s", tt.key, text)
		}
	}
	if b := design(t, env, "CardID", "OrderNumber").Bounds("OrderNumber", Given{"OrderNumber": num(1)}); b != nil {
		t.Errorf("without the card: %+v", b)
	}
	d := design(t, env, "CardID", "OrderNumber")
	d.Columns, d.Programs = slices.Insert(d.Columns, 1, Column{Name: "seq", Auto: true}), slices.Insert(d.Programs, 1, (*Program)(nil))
	conformance.Equal(t, d.Bounds("OrderNumber", given), nil, "after an auto-increment column")
}

func TestThePrefixEndIsTheNextText(t *testing.T) {
	for text, want := range map[string]string{"a": "b", "a,": "a-", "\x7f": "\u0080", "国": "图", "\uD7FF": "\uE000", "a\U0010FFFF": "b", "\U0010FFFF": ""} {
		if got, ok := following([]byte(text)); string(got) != want && text != "国" || ok != (want != "") || bytes.Compare(got, []byte(text)) <= 0 && ok {
			t.Errorf("after %q comes %q, want %q", text, got, want)
		}
	}
}

func TestAnExplanationWarnsOfFewPartitionKeysAndFourColumns(t *testing.T) {
	env := Env{Columns: inputs}
	for _, tt := range []struct {
		key  []string
		warn string
	}{
		{[]string{"k=bucket(CardID, 16)", "CardID"}, "k, the partition key, can have 16 values at most"},
		{[]string{"k=month(CardID, \"s\")", "CardID"}, "k, the partition key, can have 12 values at most"},
		{[]string{"CardID", "OrderNumber", "DeviceID", "SellerID"}, "four primary-key columns are the most"},
		{[]string{"k=md5(CardID,4)+text(CardID)", "OrderNumber"}, ""},
		{[]string{"CardID", "k=bucket(CardID, 16)"}, ""},
	} {
		notes := strings.Join(Explain(design(t, env, tt.key...), nil, nil).Notes, "\n")
		if tt.warn == "" && (strings.Contains(notes, "at most") || strings.Contains(notes, "are the most")) || !strings.Contains(notes, tt.warn) {
			t.Errorf("%q: %s", tt.key, notes)
		}
	}
	x := Explain(design(t, env, "SellerID"), nil, nil)
	x.NoteSample(1000, 3)
	if len(x.Notes) != 1 || !strings.Contains(x.Notes[0], "has 3 values in the first 1000 records") {
		t.Errorf("%q", x.Notes)
	}
	x.Notes = nil
	x.NoteSample(1000, 90)
	x.NoteSample(100, 1)
	conformance.Equal(t, len(x.Notes), 0, "%q", x.Notes)
}
