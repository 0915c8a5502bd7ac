package contract

import (
	"slices"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func TestKeysMustFitTheSchema(t *testing.T) {
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
		"too few columns":      {tb.key("a"), invalidPK("Validate PK size fail. Input: 1, Meta: 2.")},
		"too many columns":     {tb.key("a", 1, 2), invalidPK("Validate PK size fail. Input: 3, Meta: 2.")},
		"a wrong name":         {named("PK1", "pk2"), invalidPK("Validate PK name fail. Input: PK1, Meta: pk1.")},
		"a wrong order":        {swapped, invalidPK("Validate PK name fail. Input: pk2, Meta: pk1.")},
		"text for an integer":  {tb.key("a", "1"), invalidPK("Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.")},
		"an integer for text":  {tb.key(1, 1), invalidPK("Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.")},
		"a binary for text":    {tb.key([]byte("a"), 1), invalidPK("Validate PK type fail. Input: VT_BLOB, Meta: VT_STRING.")},
		"five columns":         {tb.key("a", 1, 2, 3, 4), invalid("The number of primary key columns must be in range: [1, 4].")},
		"text that is no text": {tb.key("\xff", 1), invalid("")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range []tablestore.RowChange{tb.put(v.key), tb.update(v.key, set("c", 1)), tb.delete(v.key)} {
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

// checkInBatches sends a key between two good ones: a misfit of the schema fails its row, anything else the request.
func (tb *table) checkInBatches(t *testing.T, bad *tablestore.PrimaryKey, want refusal) {
	t.Helper()
	good := tb.key("good", 1)
	w, err := tb.batch(tb.put(good), tb.put(bad), tb.put(tb.key("good", 2)))
	q := &tablestore.MultiRowQueryCriteria{TableName: tb.name, MaxVersion: 1, PrimaryKey: []*tablestore.PrimaryKey{good, bad, good}}
	r, e := tb.BatchGetRow(&tablestore.BatchGetRowRequest{MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{q}})
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

func TestATimestampIsWithinTheDeviation(t *testing.T) {
	s := proving(t, "3.3.6", "3.7.1", "3.10.3")
	tb := s.newTable(t, tableOptions{})
	k, ms := tb.key("a", 1), time.Now().UnixMilli()
	const day = 24 * 60 * 60 * 1000
	for name, v := range map[string]struct {
		change tablestore.RowChange
		want   refusal
	}{
		"older than the deviation":  {tb.put(k, c("a", 1), v("old", 1, ms-day-60_000)), invalid("Invalid timestamp. Cell:old. Timestamp:…")},
		"beyond the deviation":      {tb.update(k, setAt("new", 1, ms+day+60_000)), invalid("Invalid timestamp. Cell:new. Timestamp:…")},
		"in the deviation":          {tb.put(k, v("c", 1, ms-day+60_000)), accepted},
		"ahead in the deviation":    {tb.put(k, v("c", 1, ms+day-60_000)), accepted},
		"old, of a deleted version": {tb.update(k, dropAt("c", 1)), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s.do(v.change), v.want)
			rows := tb.rows(t, tb.put(tb.key(name, 1)), v.change)
			checkRow(t, rows[0], accepted)
			checkRow(t, rows[1], v.want)
		})
	}
}

// rawPut is the body of a PutRow.
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
		"a good row":                     {"PutRow", rawPut(tb.name, good, 0), accepted},
		"a wrong byte of a value":        {"PutRow", rawPut(tb.name, broken, 0), invalid("")},
		"no header":                      {"PutRow", rawPut(tb.name, good[4:], 0), invalid("")},
		"bytes behind the row":           {"PutRow", rawPut(tb.name, append(slices.Clone(good), 1), 0), invalid("")},
		"an empty row":                   {"PutRow", rawPut(tb.name, nil, 0), invalid("")},
		"an unknown existence condition": {"PutRow", rawPut(tb.name, good, 3), invalid("")},
		"no condition":                   {"PutRow", message{}.text(1, tb.name).bytes(2, good), invalid("")},
		"a return type nobody knows":     {"PutRow", rawPut(tb.name, good, 0).bytes(4, message{}.int(1, 9)), invalid("")},
		"RT_AFTER_MODIFY of a put":       {"PutRow", rawPut(tb.name, good, 0).bytes(4, message{}.int(1, 2).text(2, "c")), invalid("")},
		"RT_PK with columns":             {"PutRow", rawPut(tb.name, good, 0).bytes(4, message{}.int(1, 1).text(2, "c")), invalid("")},
		"a delete marker in an update":   {"UpdateRow", rawPut(tb.name, deletion, 0), invalid("Invalid request of put/update row: unexpected RowDeleteMarker in request.")},
		"a table name of none":           {"PutRow", rawPut("1t", good, 0), invalid("Invalid table name: '1t'.")},
		"a body that is no message":      {"PutRow", message{0xff}, invalid("")},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.send(t, rawRequest{operation: v.operation, body: v.body})
			a.check(t, v.want)
			a.checkSigned(t, s, v.operation)
		})
	}
	diff(t, tb.all(t), []*row{{[]any{"a", int64(1)}, []cell{c("c", "v")}}})
}
