package server

import (
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func TestLimitsAreExact(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	one := func(p *tablestore.PutRowChange) func() error {
		return func() error {
			_, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: p})
			return err
		}
	}
	columns := func(n int) *tablestore.PutRowChange {
		p := put("t", key("a", 1))
		for range n {
			p.AddColumnWithTimestamp("c", int64(1), s.o.Now().UnixMilli()-int64(len(p.Columns)))
		}
		return p
	}
	rows := func(n int) func() error {
		return func() error { _, err := c.BatchWriteRow(batchOf(n)); return err }
	}
	// Each row's names and values but for the text are 16 bytes: pk1, a, pk2, a number, c.
	pair := func(total int) func() error {
		return func() error {
			b := &tablestore.BatchWriteRowRequest{}
			b.AddRowChange(put("t", key("a", 1), "c", strings.Repeat("x", 2<<20-16)))
			b.AddRowChange(put("t", key("a", 2), "c", strings.Repeat("x", total-2<<20-16)))
			_, err := c.BatchWriteRow(b)
			return err
		}
	}
	for name, v := range map[string]struct {
		do   func() error
		want string
	}{
		"key of 1024":       {one(put("t", key(strings.Repeat("k", 1024), 1))), ""},
		"key of 1025":       {one(put("t", key(strings.Repeat("k", 1025), 1))), "The length of primary key column: 'pk1' exceeds the MaxLength:1024 with CurrentLength:1025."},
		"value of 2 MB":     {one(put("t", key("a", 1), "a", strings.Repeat("x", 2<<20))), ""},
		"value over 2 MB":   {one(put("t", key("a", 1), "a", strings.Repeat("x", 2<<20+1))), "The length of attribute column: 'a' exceeds the MaxLength:2097152 with CurrentLength:2097153."},
		"1024 cells":        {one(columns(1024)), ""},
		"1025 cells":        {one(columns(1025)), "The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025."},
		"200 rows":          {rows(200), ""},
		"201 rows":          {rows(201), "Rows count exceeds the upper limit: 200."},
		"4 MB":              {pair(4 << 20), ""},
		"4 MB and one":      {pair(4<<20 + 1), "The total data size of BatchWriteRow request exceeds the limit, limit size: 4194304, data size: 4194305."},
		"name of 255":       {one(put("t", key("a", 1), strings.Repeat("n", 255), "v")), ""},
		"name of 256":       {one(put("t", key("a", 1), strings.Repeat("n", 256), "v")), "Invalid column name"},
		"a name with #":     {one(put("t", key("a", 1), "#n", "v")), "Invalid column name: '#n'."},
		"a Chinese name":    {one(put("t", key("a", 1), "列 \n\"'", "v")), ""},
		"a key's name":      {one(put("t", key("a", 1), "pk2", "v")), "Duplicated attribute column name with primary key column: 'pk2'."},
		"not UTF-8":         {one(put("t", key("a", 1), "c", "\xff")), "Value of column c must be UTF8 encoding."},
		"a bad table name":  {one(put("1t", key("a", 1))), "Invalid table name: '1t'."},
		"an unknown table":  {one(put("u", key("a", 1))), "Requested table does not exist."},
		"a batch of no row": {rows(0), "No row is specified in BatchWriteRow."},
	} {
		err := v.do()
		if v.want == "" && err != nil || v.want != "" && (err == nil || !strings.Contains(err.Error(), v.want)) {
			t.Errorf("%s: got %v, want %q", name, err, v.want)
		}
	}
}

func TestSchemaMismatchesFailTheirRowOnly(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	b := &tablestore.BatchWriteRowRequest{}
	short := &tablestore.PrimaryKey{}
	short.AddPrimaryKeyColumn("pk1", "a")
	named := key("a", 1)
	named.PrimaryKeys[1].ColumnName = "pk3"
	typed := &tablestore.PrimaryKey{}
	typed.AddPrimaryKeyColumn("pk1", "a")
	typed.AddPrimaryKeyColumn("pk2", "1")
	late := put("t", key("a", 2))
	late.AddColumnWithTimestamp("c", "v", 1)
	for _, p := range []*tablestore.PutRowChange{put("t", short), put("t", named), put("t", typed), late, put("t", key("a", 9), "c", "v")} {
		b.AddRowChange(p)
	}
	r, err := c.BatchWriteRow(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"OTSInvalidPK Validate PK size fail. Input: 1, Meta: 2.",
		"OTSInvalidPK Validate PK name fail. Input: pk3, Meta: pk2.",
		"OTSInvalidPK Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.",
		"OTSParameterInvalid Invalid timestamp. Cell:c. Timestamp:1. MinTimestamp:",
		" ",
	} {
		if e := r.TableToRowsResult["t"][i].Error; !strings.HasPrefix(e.Code+" "+e.Message, want) || want == " " && e.Code != "" {
			t.Errorf("row %d: %s %s", i, e.Code, e.Message)
		}
	}
}

func TestCapacityUnitsAreCountedAsTheServiceDoes(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	big := strings.Repeat("x", 4097)
	check := func(what string, u *tablestore.ConsumedCapacityUnit, read, write int32) {
		if u.Read != read || u.Write != write {
			t.Errorf("%s: read %d, write %d", what, u.Read, u.Write)
		}
	}
	p := put("t", key("a", 1), "c1", big, "c2", big)
	r, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: p})
	if err != nil {
		t.Fatal(err)
	}
	check("put", r.ConsumedCapacityUnit, 0, 3)
	p.SetCondition(tablestore.RowExistenceExpectation_EXPECT_EXIST)
	if r, err = c.PutRow(&tablestore.PutRowRequest{PutRowChange: p}); err != nil {
		t.Fatal(err)
	}
	check("put expecting", r.ConsumedCapacityUnit, 1, 3)
	check("get", get(t, c, "t", key("a", 1)).ConsumedCapacityUnit, 3, 0)
	check("get of nothing", get(t, c, "t", key("b", 1)).ConsumedCapacityUnit, 1, 0)
	d := &tablestore.DeleteRowChange{TableName: "t", PrimaryKey: key("a", 1), Condition: expect(tablestore.RowExistenceExpectation_EXPECT_EXIST)}
	dr, err := c.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: d})
	if err != nil {
		t.Fatal(err)
	}
	check("delete expecting", dr.ConsumedCapacityUnit, 1, 1)
	if _, err := c.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: d}); code(err) != "OTSConditionCheckFail" {
		t.Error(err)
	}
	d.Condition = ignore()
	if dr, err = c.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: d}); err != nil {
		t.Fatal(err)
	}
	check("delete", dr.ConsumedCapacityUnit, 0, 1)
}

func TestSelectionsDecideWhetherARowIsAnswered(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t", 5)
	now := s.o.Now().UnixMilli()
	p := put("t", key("a", 1))
	for i := range int64(3) {
		p.AddColumnWithTimestamp("v", i, now-i)
	}
	p.AddColumnWithTimestamp("w", int64(9), now)
	if _, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: p}); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct {
		q     tablestore.SingleRowQueryCriteria
		found bool
		cells int
	}{
		"one version":                    {tablestore.SingleRowQueryCriteria{MaxVersion: 1}, true, 2},
		"all versions":                   {tablestore.SingleRowQueryCriteria{MaxVersion: 9}, true, 4},
		"a column":                       {tablestore.SingleRowQueryCriteria{MaxVersion: 1, ColumnsToGet: []string{"w", "w"}}, true, 1},
		"a column that is not there":     {tablestore.SingleRowQueryCriteria{MaxVersion: 1, ColumnsToGet: []string{"x"}}, false, 0},
		"a key column":                   {tablestore.SingleRowQueryCriteria{MaxVersion: 1, ColumnsToGet: []string{"pk1", "x"}}, true, 0},
		"a time without cells":           {tablestore.SingleRowQueryCriteria{TimeRange: &tablestore.TimeRange{Start: 1, End: 2}}, true, 0},
		"a time range":                   {tablestore.SingleRowQueryCriteria{TimeRange: &tablestore.TimeRange{Start: now - 1, End: now}}, true, 1},
		"newest of a range":              {tablestore.SingleRowQueryCriteria{TimeRange: &tablestore.TimeRange{Start: now - 2, End: now}, MaxVersion: 1}, true, 1},
		"an exact time":                  {tablestore.SingleRowQueryCriteria{TimeRange: &tablestore.TimeRange{Specific: now}}, true, 2},
		"columns from v to w, exclusive": {tablestore.SingleRowQueryCriteria{MaxVersion: 9, StartColumn: ptr("v"), EndColumn: ptr("w")}, true, 3},
	} {
		v.q.TableName, v.q.PrimaryKey = "t", key("a", 1)
		r, err := c.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &v.q})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if found := len(r.PrimaryKey.PrimaryKeys) > 0; found != v.found || len(r.Columns) != v.cells {
			t.Errorf("%s: found %v, %d cells", name, found, len(r.Columns))
		}
	}
}
