package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/engine/server"
)

// reserve is UpdateTable of the reserved throughput; -1 is not named.
func (s *service) reserve(t testing.TB, table string, read, write int64) *answer {
	var units message
	if read >= 0 {
		units = units.int(1, read)
	}
	if write >= 0 {
		units = units.int(2, write)
	}
	return s.send(t, rawRequest{operation: "UpdateTable", body: message{}.text(1, table).bytes(2, message{}.bytes(1, units))})
}

var tooFrequent = refusal{403, "OTSTooFrequentReservedThroughputAdjustment", "Capacity unit adjustment is too frequent."}

// Reserved throughput is kept, one of its units may be named alone, and it changes once in two minutes.
func TestReservedThroughputIsKeptAndSeldomChanged(t *testing.T) {
	spec(t, "3.6.10")
	t.Parallel()
	r := openStore(t)
	from := time.Now().Unix()
	name := newTableName()
	create := newCreate(name)
	create.throughput = message{}.int(1, 100_000).int(2, 3)
	r.send(t, rawRequest{operation: "CreateTable", body: create.body()}).check(t, accepted)
	units := func() [2]int {
		d := describe(t, r.service, name).ReservedThroughput
		return [2]int{d.Readcap, d.Writecap}
	}
	diff(t, units(), [2]int{100_000, 3})
	for what, v := range map[string]struct {
		read, write int64
		want        refusal
	}{
		"neither read nor write":    {-1, -1, invalid("Either read or write capacity unit is required to update table.")},
		"100,001 units":             {1, 100_001, invalid("The reserved capacity unit must be in range: [0, 100000].")},
		"what there is already":     {100_000, 3, accepted}, // changes nothing
		"half of what there is":     {-1, 3, accepted},
		"100,001 units for reading": {100_001, -1, invalid("The reserved capacity unit must be in range: [0, 100000].")},
	} {
		t.Run(what, func(t *testing.T) { r.reserve(t, name, v.read, v.write).check(t, v.want) })
	}
	r.reserve(t, name, -1, 4).check(t, accepted) // creating the table does not count as a change
	diff(t, units(), [2]int{100_000, 4})
	r.reserve(t, name, 1, -1).check(t, tooFrequent)
	t.Run("a refused change leaves the options alone", func(t *testing.T) {
		_, err := r.UpdateTable(&tablestore.UpdateTableRequest{TableName: name, TableOption: newOptions(-1, 9),
			ReservedThroughput: &tablestore.ReservedThroughput{Readcap: 7, Writecap: 7}})
		check(t, err, tooFrequent)
		diff(t, describe(t, r.service, name).TableOption.MaxVersion, 1)
	})
	t.Run("options alone may change at any time", func(t *testing.T) {
		for versions := range 3 {
			_, err := r.UpdateTable(&tablestore.UpdateTableRequest{TableName: name, TableOption: newOptions(-1, versions+1)})
			must(t, err)
		}
	})
	r.losePower()
	r.start(t)
	diff(t, units(), [2]int{100_000, 4})
	r.reserve(t, name, 1, -1).check(t, tooFrequent)
	details := listed(t, r.send(t, rawRequest{operation: "DescribeTable", body: message{}.text(1, name)}).body, 2)
	if at := varintOf(t, details[0], 2); at < from || at > time.Now().Unix() {
		t.Errorf("last increase at %d, the test began at %d", at, from)
	}
	if at := varintOf(t, details[0], 3); at != 0 {
		t.Errorf("last decrease at %d, want none", at)
	}
}

func TestTheThroughputIntervalCanBeSwitchedOff(t *testing.T) {
	spec(t, "3.6.10")
	t.Parallel()
	s := serviceWith(t, server.Options{ThroughputInterval: -1})
	tb := s.newTable(t, tableOptions{})
	from := time.Now().Unix()
	for _, units := range []int64{5, 6, 2} {
		s.reserve(t, tb.name, units, units).check(t, accepted)
	}
	details := listed(t, s.send(t, rawRequest{operation: "DescribeTable", body: message{}.text(1, tb.name)}).body, 2)
	if at := varintOf(t, details[0], 3); at < from {
		t.Errorf("last decrease at %d, the test began at %d", at, from)
	}
}

// varintOf is a number of a message, 0 when it is not there.
func varintOf(t testing.TB, b []byte, field uint64) (value int64) {
	t.Helper()
	for len(b) > 0 {
		tag, n := uvarint(t, b)
		v, m := uvarint(t, b[n:])
		b = b[n+m:]
		if tag&7 == 2 {
			b = b[v:]
		} else if tag>>3 == field {
			value = int64(v)
		}
	}
	return value
}

// Quotas are off unless asked for, and exact then.
func TestQuotasOfTablesAreExact(t *testing.T) {
	spec(t, "3.5.5")
	t.Parallel()
	t.Run("tables", func(t *testing.T) {
		t.Parallel()
		s := serviceWith(t, server.Options{MaxTables: 2})
		names := []string{newTableName(), newTableName(), newTableName()}
		full := refusal{403, "OTSQuotaExhausted", "Number of tables exceeded the quota."}
		for i, want := range []refusal{accepted, accepted, full} {
			check(t, s.create(newMeta(names[i], "pk1"), newOptions(-1, 1)), want)
		}
		_, err := s.DeleteTable(&tablestore.DeleteTableRequest{TableName: names[0]})
		must(t, err)
		_, err = s.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: names[1], IndexMeta: indexOn("i", []string{"pk1"})})
		must(t, err)
		check(t, s.create(newMeta(names[2], "pk1"), newOptions(-1, 1)), full) // an index is one of them
		_, err = s.DeleteIndex(&tablestore.DeleteIndexRequest{MainTableName: names[1], IndexName: "i"})
		must(t, err)
		must(t, s.create(newMeta(names[2], "pk1"), newOptions(-1, 1)))
		_, err = s.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: names[1], IndexMeta: indexOn("i", []string{"pk1"})})
		check(t, err, full)
	})
	t.Run("none by default", func(t *testing.T) {
		t.Parallel()
		s := openService(t)
		for i := range 70 {
			must(t, s.create(newMeta(fmt.Sprintf("t%d", i), "pk1"), newOptions(-1, 1)))
		}
	})
}

// Allow_update off refuses UpdateRow; what an update of the table does not name stays.
func TestATableMayForbidUpdates(t *testing.T) {
	spec(t, "3.6.8")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{versions: 3, deviation: 172800})
	k := tb.key("a", 1)
	allow := func(v int64) {
		t.Helper()
		s.send(t, rawRequest{operation: "UpdateTable", body: message{}.text(1, tb.name).bytes(3, message{}.int(6, v))}).check(t, accepted)
		if got := *describe(t, s, tb.name).TableOption.AllowUpdate; got != (v == 1) {
			t.Errorf("allow_update is %t", got)
		}
	}
	allow(0)
	check(t, s.do(tb.update(k, set("c", 1))), invalid(""))
	check(t, s.do(tb.update(k, add("c", 1))), invalid(""))
	must(t, s.do(tb.put(k, c("c", 1))))
	diff(t, options(describe(t, s, tb.name).TableOption), [3]int64{-1, 3, 172800})
	allow(1)
	must(t, s.do(tb.update(k, add("c", 1))))
	diff(t, tb.values(t, k).Cells, []cell{c("c", int64(2))})
}

// Predefined columns come and go, at most 32.
func TestPredefinedColumnsComeAndGo(t *testing.T) {
	spec(t, "3.3.8", "3.3.9")
	t.Parallel()
	r := openStore(t)
	tb := r.newTable(t, tableOptions{defined: []tablestore.DefinedColumnSchema{{Name: "a", ColumnType: tablestore.DefinedColumn_INTEGER}}})
	add := func(names ...string) error {
		q := &tablestore.AddDefinedColumnRequest{TableName: tb.name}
		for _, n := range names {
			q.AddDefinedColumn(n, tablestore.DefinedColumn_STRING)
		}
		_, err := r.AddDefinedColumn(q)
		return err
	}
	remove := func(names ...string) error {
		q := &tablestore.DeleteDefinedColumnRequest{TableName: tb.name}
		q.DefinedColumns = names
		_, err := r.DeleteDefinedColumn(q)
		return err
	}
	defined := func() (names []string) {
		for _, d := range describe(t, r.service, tb.name).TableMeta.DefinedColumns {
			names = append(names, d.Name)
		}
		return names
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("d%d", i))
	}
	must(t, add("b"))
	check(t, r.do(tb.put(tb.key("a", 1), c("b", 1))), invalid("Invalid column type for column b expect VT_STRING actual VT_INTEGER"))
	for what, v := range map[string]struct {
		err  error
		want refusal
	}{
		"none":                   {add(), invalid("No defined column is specified.")},
		"one that is there":      {add("c", "a"), invalid("Duplicated column name: 'a'.")},
		"one twice":              {add("c", "c"), invalid("Duplicated column name: 'c'.")},
		"one of the primary key": {add("pk2"), invalid("Duplicated column name: 'pk2'.")},
		"one without a name":     {add(""), invalid("Invalid column name: ''.")},
		"31 more than two":       {add(append(many, "x")...), invalid("The number of defined columns must be in range: [0, 32].")},
		"a delete of none":       {remove(), invalid("No defined column is specified.")},
		"a delete of a stranger": {remove("a", "z"), invalid("Defined column 'z' does not exist.")},
		"a delete of one twice":  {remove("a", "a"), invalid("Duplicated column name: 'a'.")},
	} {
		t.Run(what, func(t *testing.T) { check(t, v.err, v.want) })
	}
	diff(t, defined(), []string{"a", "b"})
	must(t, add(many...))
	diff(t, len(defined()), 32)
	check(t, add("x"), invalid("The number of defined columns must be in range: [0, 32]."))
	must(t, remove(append(many, "b")...))
	r.losePower()
	r.start(t)
	diff(t, defined(), []string{"a"})
	must(t, r.do(tb.put(tb.key("a", 1), c("b", 1))))
	gone := &table{service: r.service, name: newTableName()}
	tb, live := gone, tb
	check(t, add("a"), noSuchTable)
	check(t, remove("a"), noSuchTable)
	tb = live
}
