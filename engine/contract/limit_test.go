package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func TestBatchWriteRowLimit(t *testing.T) {
	s := proving(t, "3.5.1")
	one, two := s.newTable(t, tableOptions{}), s.newTable(t, tableOptions{})
	batch := func(a, b int) error {
		changes := several(a, func(i int) change { return one.put(one.key("a", i)) })
		changes = append(changes, several(b, func(i int) change { return two.put(two.key("a", i)) })...)
		_, err := s.batch(changes...)
		return err
	}
	want := invalid("Rows count exceeds the upper limit: 200.")
	t.Run("a batch of 201 rows is refused as a whole", func(t *testing.T) {
		check(t, batch(201, 0), want)
		diff(t, len(one.all(t)), 0)
	})
	t.Run("201 rows of two tables are refused as a whole", func(t *testing.T) {
		check(t, batch(101, 100), want)
		diff(t, len(one.all(t))+len(two.all(t)), 0)
	})
	t.Run("200 rows of two tables are accepted", func(t *testing.T) {
		must(t, batch(199, 1))
		diff(t, len(one.all(t)), 199)
		diff(t, len(two.all(t)), 1)
	})
	t.Run("200 rows of one table are accepted", func(t *testing.T) {
		must(t, batch(200, 0))
		diff(t, len(one.all(t)), 200)
	})
}

func TestBatchGetRowLimit(t *testing.T) {
	s := proving(t, "3.5.2")
	one, two := s.newTable(t, tableOptions{}), s.newTable(t, tableOptions{})
	read := func(a, b int) error {
		q := []*tablestore.MultiRowQueryCriteria{one.keysToGet(), two.keysToGet()}
		for i := range a {
			q[0].AddRow(one.key("a", i))
		}
		for i := range b {
			q[1].AddRow(two.key("a", i))
		}
		r, err := s.BatchGetRow(&tablestore.BatchGetRowRequest{MultiRowQueryCriteria: q})
		if err == nil {
			diff(t, [2]int{len(r.TableToRowsResult[one.name]), len(r.TableToRowsResult[two.name])}, [2]int{a, b})
		}
		return err
	}
	want := invalid("Rows count exceeds the upper limit: 100.")
	for _, v := range []struct {
		a, b int
		want refusal
	}{{100, 0, accepted}, {50, 50, accepted}, {101, 0, want}, {100, 1, want}} {
		t.Run(fmt.Sprintf("%d keys and %d others", v.a, v.b), func(t *testing.T) { check(t, read(v.a, v.b), v.want) })
	}
}

// The limit of 4 MB counts names, values, and 8 bytes for each timestamp given.
func TestWriteDataLimit(t *testing.T) {
	s := proving(t, "3.5.3", "6.1.3")
	tb := s.newTable(t, tableOptions{})
	const limit, half = 4 << 20, 2 << 20
	k, k2 := tb.key("k", 1), tb.key("k", 2)
	now := time.Now().UnixMilli()
	rest := limit - half - keyBytes - 2   // for column b of one row, whose column a has half
	last := limit - half - 2*keyBytes - 2 // for the second of two rows
	first := tb.put(k, c("a", text(half)))
	message := func(op string) string {
		return "The total data size of " + op + " request exceeds the limit, limit size: 4194304, data size: 4194305."
	}
	for name, x := range map[string]struct {
		changes []change
		over    string // the operation whose limit is exceeded by one byte
	}{
		"a put of 4 MB":           {[]change{tb.put(k, c("a", text(half)), c("b", text(rest)))}, ""},
		"a put of 4 MB and 1":     {[]change{tb.put(k, c("a", text(half)), c("b", text(rest+1)))}, "PutRow"},
		"an update of 4 MB":       {[]change{tb.update(k, set("a", text(half)), set("b", text(rest)))}, ""},
		"an update of 4 MB and 1": {[]change{tb.update(k, set("a", text(half)), set("b", text(rest+1)))}, "UpdateRow"},
		"a batch of 4 MB":         {[]change{first, tb.update(k2, set("b", text(last)))}, ""},
		"a batch of 4 MB and 1":   {[]change{first, tb.update(k2, set("b", text(last+1)))}, "BatchWriteRow"},
		"4 MB with a timestamp":   {[]change{tb.put(k, v("a", text(half), now)), tb.put(k2, c("b", text(last-8)))}, ""},
		"4 MB and 1 with a timestamp": {[]change{tb.put(k, v("a", text(half), now)), tb.put(k2, c("b", text(last-7)))},
			"BatchWriteRow"},
		"4 MB with a deleted column":   {[]change{first, tb.update(k2, set("b", text(last-1)), drop("x"))}, ""},
		"4 MB and 1, a deleted column": {[]change{first, tb.update(k2, set("b", text(last)), drop("x"))}, "BatchWriteRow"},
		"4 MB with an integer":         {[]change{first, tb.put(k2, c("b", text(last-9)), c("i", 1))}, ""},
		"4 MB and 1 with a boolean":    {[]change{first, tb.put(k2, c("b", text(last-1)), c("i", true))}, "BatchWriteRow"},
		"4 MB with a deletion":         {[]change{tb.put(k, c("a", text(half)), c("b", text(last))), tb.delete(k2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tb.load(t, tb.delete(k), tb.delete(k2))
			var err error
			if len(x.changes) == 1 {
				err = s.do(x.changes[0])
			} else {
				_, err = s.batch(x.changes...)
			}
			if x.over == "" {
				check(t, err, accepted)
				return
			}
			check(t, err, invalid(message(x.over)))
			for _, k := range []*tablestore.PrimaryKey{k, k2} {
				diff(t, tb.get(t, k, columns("pk1")), (*row)(nil))
			}
		})
	}
}

func TestRowCellLimit(t *testing.T) {
	s := proving(t, "3.3.4", "3.10.2", "6.1.3")
	tb := s.newTable(t, tableOptions{versions: 2000})
	now := time.Now().UnixMilli()
	named := func(n int) (cells []cell, steps, drops []step) {
		for i := range n {
			cells = append(cells, c(fmt.Sprintf("c%d", i), i))
			steps = append(steps, set(fmt.Sprintf("c%d", i), i))
			drops = append(drops, drop(fmt.Sprintf("c%d", i)))
		}
		return cells, steps, drops
	}
	timed := func(n int) (cells []cell) {
		for i := range n {
			cells = append(cells, v("c", i, now-int64(i)))
		}
		return cells
	}
	cells, steps, drops := named(1025)
	put := func(cells []cell) func(key) change { return func(k key) change { return tb.put(k, cells...) } }
	update := func(steps []step) func(key) change { return func(k key) change { return tb.update(k, steps...) } }
	want := invalid("The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025.")
	for name, x := range map[string]struct {
		fits, over func(key) change
		kept       int
	}{
		"columns of a put":            {put(cells[:1024]), put(cells), 1024},
		"versions of one column":      {put(timed(1024)), put(timed(1025)), 1024},
		"columns of an update":        {update(steps[:1024]), update(steps), 1024},
		"columns an update takes out": {update(drops[:1024]), update(drops), 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := tb.key(name, 1)
			check(t, s.do(x.over(k)), want)
			_, err := tb.batch(tb.put(tb.key("bystander", 1)), x.over(k))
			check(t, err, want)
			diff(t, tb.get(t, tb.key("bystander", 1)), (*row)(nil))
			diff(t, tb.get(t, k), (*row)(nil))
			must(t, s.do(x.fits(k)))
			checkRow(t, tb.rows(t, x.fits(tb.key(name, 2)))[0], accepted)
			kept := 0
			if r := tb.get(t, k, versions(2000)); r != nil {
				kept = len(r.Cells)
			}
			diff(t, kept, x.kept)
		})
	}
	t.Run("a stored row may have more cells", func(t *testing.T) {
		k := tb.key("many", 1)
		must(t, s.do(tb.update(k, steps[:1000]...)))
		must(t, s.do(tb.update(k, steps[500:]...)))
		diff(t, len(tb.get(t, k).Cells), 1025)
	})
}

func TestValueLimits(t *testing.T) {
	s := proving(t, "3.1.2", "3.3.3", "3.4.2", "3.10.2")
	tb := s.newTable(t, tableOptions{})
	bytes := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_BINARY}})
	keyOver := func(name string) refusal {
		return invalid("The length of primary key column: '" + name + "' exceeds the MaxLength:1024 with CurrentLength:1025.")
	}
	const valueLimit = 2 << 20
	valueOver := invalid("The length of attribute column: 'a' exceeds the MaxLength:2097152 with CurrentLength:2097153.")
	for name, x := range map[string]struct {
		table  *table
		change tablestore.RowChange
		want   refusal
	}{
		"a key text of 1024 bytes":         {tb, tb.put(tb.key(text(1024), 1)), accepted},
		"a key text of 1025 bytes":         {tb, tb.put(tb.key(text(1025), 1)), keyOver("pk1")},
		"a key text of 1025 in characters": {tb, tb.put(tb.key(strings.Repeat("表", 341)+"xx", 1)), keyOver("pk1")},
		"a deleted key of 1025 bytes":      {tb, tb.delete(tb.key(text(1025), 1)), keyOver("pk1")},
		"a key binary of 1024 bytes":       {bytes, bytes.put(bytes.key([]byte(text(1024)))), accepted},
		"a key binary of 1025 bytes":       {bytes, bytes.put(bytes.key([]byte(text(1025)))), keyOver("pk1")},
		"a text of 2 MB":                   {tb, tb.put(tb.key("a", 1), c("a", text(valueLimit))), accepted},
		"a text of 2 MB and 1":             {tb, tb.put(tb.key("a", 1), c("a", text(valueLimit+1))), valueOver},
		"a binary of 2 MB":                 {tb, tb.put(tb.key("a", 1), c("a", []byte(text(valueLimit)))), accepted},
		"a binary of 2 MB and 1":           {tb, tb.put(tb.key("a", 1), c("a", []byte(text(valueLimit+1)))), valueOver},
		"an updated text of 2 MB":          {tb, tb.update(tb.key("a", 1), set("a", text(valueLimit))), accepted},
		"an updated text of 2 MB and 1":    {tb, tb.update(tb.key("a", 1), set("a", text(valueLimit+1))), valueOver},
		"a column name of 255 bytes":       {tb, tb.update(tb.key("a", 1), set(text(255), 1)), accepted},
		"a column name of 256 bytes": {tb, tb.update(tb.key("a", 1), set(text(256), 1)),
			invalid("Invalid column name: '" + text(256) + "'.")},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s.do(x.change), x.want)
			r, err := s.batch(tb.put(tb.key(name, 1)), x.change)
			check(t, err, x.want)
			conformance.Equal(t, tb.get(t, tb.key(name, 1)) != nil, x.want == accepted, "the other row of the batch is there")
			if err == nil {
				rows := r.TableToRowsResult[x.table.name]
				checkRow(t, rows[len(rows)-1], accepted)
			}
		})
	}
	t.Run("a key of 1025 bytes cannot be read, either", func(t *testing.T) {
		_, _, err := tb.tryGet(tb.key(text(1025), 1))
		check(t, err, keyOver("pk1"))
		_, err = s.GetRange(ranged(tb.criteria(tb.key("a", 1)), tablestore.FORWARD, tb.key(text(1025), 1), 0))
		check(t, err, keyOver("pk1"))
	})
}

func TestKeyColumnsMayHaveNamesOf255Bytes(t *testing.T) {
	s := proving(t, "3.4.2")
	name := newTableName()
	must(t, s.create(newMeta(name, text(255), strings.Repeat("y", 255)), newOptions(-1, 1)))
	s.dropLater(t, name)
	d := describe(t, s, name)
	diff(t, *d.TableMeta.SchemaEntry[0].Name, text(255))
	diff(t, *d.TableMeta.SchemaEntry[1].Name, strings.Repeat("y", 255))
}

func TestBodySizeLimit(t *testing.T) {
	s := proving(t, "1.1.4")
	tooLarge := refusal{413, "OTSRequestBodyTooLarge", "The size of POST data is too large."}
	for name, v := range map[string]struct {
		size int
		want refusal
	}{
		"a body of 5 MB is read, but not a message":   {5 << 20, invalid("")},
		"a body of 5 MB and 1 is refused":             {5<<20 + 1, tooLarge},
		"a body of 8 MB is refused, not just cut off": {8 << 20, tooLarge},
	} {
		t.Run(name, func(t *testing.T) { s.ask(t, "BatchWriteRow", []byte(text(v.size))).check(t, v.want) })
	}
}

func TestKeysMustMatchSchema(t *testing.T) {
	s := proving(t, "3.1.1", "3.1.4", "3.1.5")
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("good", 1))))
	named := func(n1, n2 string) *tablestore.PrimaryKey {
		k := tb.key("a", 1)
		k.PrimaryKeys[0].ColumnName, k.PrimaryKeys[1].ColumnName = n1, n2
		return k
	}
	swapped := tb.key("a", 1)
	swapped.PrimaryKeys[0], swapped.PrimaryKeys[1] = swapped.PrimaryKeys[1], swapped.PrimaryKeys[0]
	for name, v := range map[string]struct {
		key  *tablestore.PrimaryKey
		want refusal
	}{
		"too few columns":  {tb.key("a"), invalidPK("Validate PK size fail. Input: 1, Meta: 2.")},
		"too many columns": {tb.key("a", 1, 2), invalidPK("Validate PK size fail. Input: 3, Meta: 2.")},
		"a wrong name":     {named("PK1", "pk2"), invalidPK("Validate PK name fail. Input: PK1, Meta: pk1.")},
		"a wrong order":    {swapped, invalidPK("Validate PK name fail. Input: pk2, Meta: pk1.")},
		"an integer text":  {tb.key("a", "1"), invalidPK("Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.")},
		"a text's integer": {tb.key(1, 1), invalidPK("Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.")},
		"a text's binary":  {tb.key([]byte("a"), 1), invalidPK("Validate PK type fail. Input: VT_BLOB, Meta: VT_STRING.")},
		"five columns":     {tb.key("a", 1, 2, 3, 4), invalid("The number of primary key columns must be in range: [1, 4].")},
		"a broken text":    {tb.key("\xff", 1), invalid("")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range []change{tb.put(v.key), tb.update(v.key, set("c", 1)), tb.delete(v.key)} {
				check(t, s.do(change), v.want)
			}
			_, _, err := tb.tryGet(v.key)
			check(t, err, v.want)
			_, err = s.GetRange(ranged(tb.criteria(v.key), tablestore.FORWARD, tb.key(maxKey, maxKey), 0))
			check(t, err, v.want)
			tb.checkInBatches(t, v.key, v.want)
		})
	}
}

// checkInBatches sends a key between two valid ones. A schema mismatch fails only its row, other errors the request.
func (tb *table) checkInBatches(t *testing.T, bad *tablestore.PrimaryKey, want refusal) {
	good := tb.key("good", 1)
	w, err := tb.batch(tb.put(good), tb.put(bad), tb.put(tb.key("good", 2)))
	r, e := tb.BatchGetRow(batchRead(tb.keysToGet(good, bad, good)))
	if want.code != "OTSInvalidPK" {
		check(t, err, want)
		check(t, e, want)
		return
	}
	must(t, err)
	must(t, e)
	for _, rows := range [][]tablestore.RowResult{w.TableToRowsResult[tb.name], r.TableToRowsResult[tb.name]} {
		checkRow(t, rows[0], accepted)
		checkRow(t, rows[1], want)
		checkRow(t, rows[2], accepted)
	}
}

func TestTimestampMustBeWithinDeviation(t *testing.T) {
	s := proving(t, "3.3.6", "3.7.1", "3.10.3")
	tb := s.newTable(t, tableOptions{})
	k, ms := tb.key("a", 1), time.Now().UnixMilli()
	const day = 24 * 60 * 60 * 1000
	for name, v := range map[string]struct {
		change tablestore.RowChange
		want   refusal
	}{
		"too old":   {tb.put(k, c("a", 1), v("old", 1, ms-day-60_000)), invalid("Invalid timestamp. Cell:old. Timestamp:…")},
		"too new":   {tb.update(k, setAt("new", 1, ms+day+60_000)), invalid("Invalid timestamp. Cell:new. Timestamp:…")},
		"within it": {tb.put(k, v("c", 1, ms-day+60_000)), accepted},
		"ahead":     {tb.put(k, v("c", 1, ms+day-60_000)), accepted},
		"deleted":   {tb.update(k, dropAt("c", 1)), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s.do(v.change), v.want)
			rows := tb.rows(t, tb.put(tb.key(name, 1)), v.change)
			checkRow(t, rows[0], accepted)
			checkRow(t, rows[1], v.want)
		})
	}
}

func rawPut(table string, row []byte, expect int64) message {
	return message{}.text(1, table).bytes(2, row).bytes(3, message{}.int(1, expect))
}

func TestMalformedRowsAreRefused(t *testing.T) {
	s := proving(t, "1.7.2", "1.10.1", "1.10.3", "2.1.1", "2.2.2", "2.3.2", "2.3.4", "2.3.5", "3.8.8")
	tb := s.newTable(t, tableOptions{})
	good := tb.put(tb.key("a", 1), c("c", "v")).Serialize()
	deletion := tb.delete(tb.key("a", 1)).Serialize()
	broken := slices.Clone(good)
	broken[len(broken)-5] ^= 1
	for name, v := range map[string]struct {
		operation string
		body      message
		want      refusal
	}{
		"a good row":           {"PutRow", rawPut(tb.name, good, 0), accepted},
		"a wrong byte":         {"PutRow", rawPut(tb.name, broken, 0), invalid("")},
		"no header":            {"PutRow", rawPut(tb.name, good[4:], 0), invalid("")},
		"bytes after it":       {"PutRow", rawPut(tb.name, append(slices.Clone(good), 1), 0), invalid("")},
		"an empty row":         {"PutRow", rawPut(tb.name, nil, 0), invalid("")},
		"an unknown condition": {"PutRow", rawPut(tb.name, good, 3), invalid("")},
		"no condition":         {"PutRow", message{}.text(1, tb.name).bytes(2, good), invalid("")},
		"a return type of 9":   {"PutRow", rawPut(tb.name, good, 0).bytes(4, message{}.int(1, 9)), invalid("")},
		"RT_AFTER_MODIFY":      {"PutRow", rawPut(tb.name, good, 0).bytes(4, message{}.int(1, 2).text(2, "c")), invalid("")},
		"RT_PK with columns":   {"PutRow", rawPut(tb.name, good, 0).bytes(4, message{}.int(1, 1).text(2, "c")), invalid("")},
		"a marked update": {"UpdateRow", rawPut(tb.name, deletion, 0),
			invalid("Invalid request of put/update row: unexpected RowDeleteMarker in request.")},
		"a table name of none": {"PutRow", rawPut("1t", good, 0), invalid("Invalid table name: '1t'.")},
		"an unparsable body":   {"PutRow", message{0xff}, invalid("")},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.ask(t, v.operation, v.body)
			a.check(t, v.want)
			a.checkSigned(t, s, v.operation)
		})
	}
	diff(t, tb.all(t), []*row{{[]any{"a", int64(1)}, []cell{c("c", "v")}}})
}
