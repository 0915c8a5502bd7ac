package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
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

// reservation is what DescribeTable says of the reserved throughput.
func (s *service) reservation(t testing.TB, table string) parsed {
	t.Helper()
	return parseOf(t, s.described(t, table).bytes(2))
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
			must(t, r.alter(name, newOptions(-1, versions+1)))
		}
	})
	r.losePower()
	r.start(t)
	diff(t, units(), [2]int{100_000, 4})
	r.reserve(t, name, 1, -1).check(t, tooFrequent)
	details := r.reservation(t, name)
	if at := details.number(2); at < from || at > time.Now().Unix() {
		t.Errorf("last increase at %d, the test began at %d", at, from)
	}
	conformance.Equal(t, details.number(3), 0, "last decrease at")
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
	if at := s.reservation(t, tb.name).number(3); at < from {
		t.Errorf("last decrease at %d, the test began at %d", at, from)
	}
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
		must(t, s.deleteTable(names[0]))
		must(t, s.addIndex(names[1], indexOn("i", []string{"pk1"}), false))
		check(t, s.create(newMeta(names[2], "pk1"), newOptions(-1, 1)), full) // an index is one of them
		must(t, s.dropIndex(names[1], "i"))
		must(t, s.create(newMeta(names[2], "pk1"), newOptions(-1, 1)))
		check(t, s.addIndex(names[1], indexOn("i", []string{"pk1"}), false), full)
	})
	t.Run("none by default", func(t *testing.T) {
		t.Parallel()
		s := openService(t)
		for i := range 70 {
			must(t, s.create(newMeta(fmt.Sprintf("t%d", i), "pk1"), newOptions(-1, 1)))
		}
	})
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
