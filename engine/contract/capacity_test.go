package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
)

type units [2]int32

func unitsOf(u *tablestore.ConsumedCapacityUnit) units { return units{u.Read, u.Write} }

// keyBytes is the size of tb.key("k", 1): the names pk1 and pk2, "k" and an integer.
const keyBytes = 3 + 1 + 3 + 8

func TestWriteUnitIsFourKilobytes(t *testing.T) {
	s := proving(t, "4.1.1", "4.1.2", "4.1.3")
	tb := s.newTable(t, tableOptions{versions: 5})
	now := time.Now().UnixMilli()
	k := tb.key("k", 1)
	full := 4096 - keyBytes - 1 // the length of column c with which the row fills one unit
	big := c("a", text(4097))
	for name, v := range map[string]struct {
		change tablestore.RowChange
		want   units
	}{
		"put of a key alone":                  {tb.put(k), units{0, 1}},
		"put of 4096 bytes":                   {tb.put(k, c("c", text(full))), units{0, 1}},
		"put of 4097 bytes":                   {tb.put(k, c("c", text(full+1))), units{0, 2}},
		"put of two columns of 4097":          {tb.put(k, c("a", text(4097)), c("b", text(4097))), units{0, 3}},
		"a timestamp does not count":          {tb.put(k, v("c", text(full), now)), units{0, 1}},
		"every version, name and value":       {tb.put(k, v("c", text(2040), now), v("c", text(2039), now-1)), units{0, 1}},
		"every version, and one byte more":    {tb.put(k, v("c", text(2040), now), v("c", text(2040), now-1)), units{0, 2}},
		"an integer is 8 bytes":               {tb.put(k, c("c", text(full-9)), c("i", 1)), units{0, 1}},
		"an integer is no less":               {tb.put(k, c("c", text(full-8)), c("i", 1)), units{0, 2}},
		"a double is 8 bytes":                 {tb.put(k, c("c", text(full-9)), c("d", 0.5)), units{0, 1}},
		"a double is no less":                 {tb.put(k, c("c", text(full-8)), c("d", 0.5)), units{0, 2}},
		"a boolean is 1 byte":                 {tb.put(k, c("c", text(full-2)), c("b", true)), units{0, 1}},
		"a boolean is no less":                {tb.put(k, c("c", text(full-1)), c("b", true)), units{0, 2}},
		"update of 4096 bytes":                {tb.update(k, set("c", text(full))), units{0, 1}},
		"update of 4097 bytes":                {tb.update(k, set("c", text(full+1))), units{0, 2}},
		"an increment is 8 bytes":             {tb.update(k, set("c", text(full-9)), add("n", 1)), units{0, 1}},
		"an increment is no less":             {tb.update(k, set("c", text(full-8)), add("n", 1)), units{0, 2}},
		"a deleted column's name counts":      {tb.update(k, set("c", text(full-1)), drop("a")), units{0, 1}},
		"a deleted column counts no less":     {tb.update(k, set("c", text(full)), drop("a")), units{0, 2}},
		"a deleted version's name counts":     {tb.update(k, set("c", text(full-1)), dropAt("a", 1)), units{0, 1}},
		"delete counts the key":               {tb.delete(k), units{0, 1}},
		"put that expects a row reads it":     {expecting(expectExist, tb.put(k, big, c("b", text(4097)))), units{1, 3}},
		"update that expects a row reads it":  {expecting(expectExist, tb.update(k, set("a", text(4097)))), units{1, 2}},
		"delete that expects a row reads it":  {expecting(expectExist, tb.delete(k)), units{1, 1}},
		"put that expects no row reads it":    {expecting(expectNotExist, tb.put(tb.key("n", 1))), units{1, 1}},
		"delete that expects no row reads it": {expecting(expectNotExist, tb.delete(tb.key("n", 2))), units{1, 1}},
		"update that deletes from no row":     {tb.update(tb.key("n", 3), drop("a")), units{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.do(tb.put(k, c("old", text(10_000)))))
			must(t, s.do(tb.delete(tb.key("n", 1))))
			got := conformance.Try(s.units(v.change)).Must(t)
			diff(t, unitsOf(got), v.want)
			must(t, s.do(tb.put(k, c("old", text(10_000)))))
			must(t, s.do(tb.delete(tb.key("n", 1))))
			diff(t, unitsOf(tb.rows(t, v.change)[0].ConsumedCapacityUnit), v.want)
		})
	}
	t.Run("returning the key with RT_PK is free", func(t *testing.T) {
		p := tb.put(k, c("c", text(full)))
		p.SetReturnPk()
		got := conformance.Try(s.units(p)).Must(t)
		diff(t, unitsOf(got), units{0, 1})
	})
}

func TestLongKeyConsumesMoreThanOneUnit(t *testing.T) {
	s := proving(t, "4.1.2", "4.1.3")
	const str = tablestore.PrimaryKeyType_STRING
	tb := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{str, str, str, str}})
	key := func(last int) *tablestore.PrimaryKey { return tb.key(text(1024), text(1024), text(1024), text(last)) }
	const fits = 4096 - 4*3 - 3*1024
	passes := lenient(compare("x", eq, 1))
	for name, v := range map[string]struct {
		change tablestore.RowChange
		want   units
	}{
		"4096 bytes, ignoring":             {tb.put(key(fits)), units{0, 1}},
		"4096 bytes, expecting":            {expecting(expectExist, tb.put(key(fits))), units{1, 1}},
		"4097 bytes, ignoring":             {tb.put(key(fits + 1)), units{0, 2}},
		"4097 bytes, expecting":            {expecting(expectExist, tb.put(key(fits+1))), units{2, 2}},
		"4097 bytes, expecting nothing":    {expecting(expectNotExist, tb.put(key(fits+2))), units{2, 2}},
		"4097 bytes, deleted":              {tb.delete(key(fits + 1)), units{0, 2}},
		"put, conditional":                 {when(passes, tb.put(key(fits))), units{1, 1}},
		"put of 4097 bytes, conditional":   {when(passes, tb.put(key(fits+1))), units{2, 2}},
		"update, conditional":              {when(passes, tb.update(key(fits+1), set("c", text(4095)))), units{2, 3}},
		"deleted, conditional":             {when(passes, tb.delete(key(fits))), units{1, 1}},
		"4097 bytes, deleted, conditional": {when(passes, tb.delete(key(fits+1))), units{2, 2}},
		"put, conditional and expecting":   {when(passes, expecting(expectExist, tb.put(key(fits+1)))), units{2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := func() { tb.load(t, tb.put(key(fits)), tb.put(key(fits+1)), tb.delete(key(fits+2))) }
			seed()
			got := conformance.Try(s.units(v.change)).Must(t)
			diff(t, unitsOf(got), v.want)
			seed()
			diff(t, unitsOf(tb.rows(t, v.change)[0].ConsumedCapacityUnit), v.want)
		})
	}
}

func TestReadsAreChargedForTheirAnswers(t *testing.T) {
	s := proving(t, "4.1.4", "4.1.5")
	tb := s.newTable(t, tableOptions{versions: 2})
	k := tb.key("k", 1)
	full := 4096 - keyBytes - 1
	now := time.Now().UnixMilli()
	wide := []cell{c("a", text(4096)), c("b", text(9<<10)), c("n", 1)}
	for name, x := range map[string]struct {
		cells []cell // nil if the row does not exist
		read  []selection
		want  int32
	}{
		"no row":                 {nil, nil, 1},
		"a row without columns":  {[]cell{}, nil, 1},
		"4096 bytes":             {[]cell{c("c", text(full))}, nil, 1},
		"4097 bytes":             {[]cell{c("c", text(full+1))}, nil, 2},
		"a column of 9 KB":       {[]cell{c("c", text(9<<10))}, nil, 3},
		"one of two columns":     {[]cell{c("c", text(full)), c("d", text(9<<10))}, []selection{columns("c")}, 1},
		"the newer version":      {[]cell{v("c", text(full), now), v("c", text(9<<10), now-1)}, []selection{versions(1)}, 1},
		"both versions":          {[]cell{v("c", text(4096), now), v("c", text(4096), now-1)}, []selection{versions(2)}, 3},
		"a missing column":       {[]cell{c("c", text(9<<10))}, []selection{columns("x")}, 1},
		"the key alone":          {[]cell{c("c", text(9<<10))}, []selection{columns("pk1")}, 1},
		"no column of the range": {[]cell{c("c", text(9<<10))}, []selection{columnRange("d", "")}, 1},
		"a row that passes":      {wide, []selection{filtered(compare("n", eq, 1))}, 4},
		"a row that does not":    {wide, []selection{filtered(compare("n", eq, 2))}, 1},
		"a page of the row":      {wide, []selection{filtered(pageOf(1, 1))}, 3},
		"a page of no column":    {wide, []selection{filtered(pageOf(3, 1))}, 1},
		"nothing of that time":   {[]cell{c("c", text(9<<10))}, []selection{between(1, 2)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.do(tb.delete(k)))
			if x.cells != nil {
				must(t, s.do(tb.put(k, x.cells...)))
			}
			_, r, err := tb.tryGet(k, x.read...)
			must(t, err)
			diff(t, unitsOf(r.ConsumedCapacityUnit), units{x.want, 0})
			b := conformance.Try(tb.tryBatchGet(k, x.read...)).Must(t)
			diff(t, unitsOf(b.ConsumedCapacityUnit), units{x.want, 0})
			if tb.criteria(k, x.read...).Filter == nil { // a range is charged for the bytes that it scans
				g := tb.page(t, tablestore.FORWARD, tb.key("k", 2), 0, k, x.read...)
				diff(t, unitsOf(g.ConsumedCapacityUnit), units{x.want, 0})
			}
		})
	}
}

func TestRangeIsChargedForScannedBytes(t *testing.T) {
	s := proving(t, "4.1.5")
	tb := s.newTable(t, tableOptions{})
	big := []cell{c("a", text(4097)), c("b", text(4097)), c("c", text(4097))}
	tb.load(t, tb.put(tb.key("big", 1), big...), tb.put(tb.key("big", 2), big...))
	// Each row has 19 bytes: pk1, "s", pk2, an integer, "c" and "abc".
	tb.load(t, several(300, func(i int) change { return tb.put(tb.key("s", i), c("c", "abc")) })...)
	for name, x := range map[string]struct {
		partition string
		limit     int32
		read      []selection
		rows      int
		want      int32
	}{
		"two rows of three columns of 4097 bytes": {"big", 0, nil, 2, 7},
		"one of them":                              {"big", 1, nil, 1, 4},
		"one column of them":                       {"big", 0, []selection{columns("a")}, 2, 3},
		"no row at all":                            {"none", 0, nil, 0, 1},
		"many small rows are rounded once":         {"s", 200, nil, 200, 1},
		"and add up":                               {"s", 0, nil, 300, 2},
		"scanned rows that are not returned count": {"s", 0, []selection{columns("x")}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := tb.page(t, tablestore.FORWARD, tb.key(x.partition, maxKey), x.limit, tb.key(x.partition, minKey), x.read...)
			diff(t, len(r.Rows), x.rows)
			diff(t, unitsOf(r.ConsumedCapacityUnit), units{x.want, 0})
		})
	}
}

// reserve updates the reserved throughput. It omits a unit that is -1.
func (s *service) reserve(t testing.TB, table string, read, write int64) *answer {
	var units message
	if read >= 0 {
		units = units.int(1, read)
	}
	if write >= 0 {
		units = units.int(2, write)
	}
	return s.ask(t, "UpdateTable", message{}.text(1, table).bytes(2, message{}.bytes(1, units)))
}

func (s *service) reservation(t testing.TB, table string) parsed {
	t.Helper()
	return parseOf(t, s.described(t, table).bytes(2))
}

var tooOften = refusal{403, "OTSTooFrequentReservedThroughputAdjustment", "Capacity unit adjustment is too frequent."}

// Reserved throughput is stored. Either unit may be changed alone. Two minutes must pass between changes.
func TestReservedThroughputIsStored(t *testing.T) {
	spec(t, "3.6.10")
	t.Parallel()
	r := openStore(t)
	from := time.Now().Unix()
	name := newTableName()
	create := newCreate(name)
	create.throughput = message{}.int(1, 100_000).int(2, 3)
	r.ask(t, "CreateTable", create.body()).check(t, accepted)
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
	r.reserve(t, name, 1, -1).check(t, tooOften)
	t.Run("a refused change leaves the options alone", func(t *testing.T) {
		_, err := r.UpdateTable(&tablestore.UpdateTableRequest{TableName: name, TableOption: newOptions(-1, 9),
			ReservedThroughput: &tablestore.ReservedThroughput{Readcap: 7, Writecap: 7}})
		check(t, err, tooOften)
		diff(t, describe(t, r.service, name).TableOption.MaxVersion, 1)
	})
	t.Run("options may change at any time", func(t *testing.T) {
		for versions := range 3 {
			must(t, r.alter(name, newOptions(-1, versions+1)))
		}
	})
	r.losePower()
	r.start(t)
	diff(t, units(), [2]int{100_000, 4})
	r.reserve(t, name, 1, -1).check(t, tooOften)
	details := r.reservation(t, name)
	at := details.number(2)
	conformance.True(t, at >= from && at <= time.Now().Unix(), "last increase at %d, the test began at %d", at, from)
	conformance.Equal(t, details.number(3), 0, "last decrease at")
}

func TestThroughputIntervalCanBeDisabled(t *testing.T) {
	spec(t, "3.6.10")
	t.Parallel()
	s := serviceWith(t, server.Options{ThroughputInterval: -1})
	tb := s.newTable(t, tableOptions{})
	from := time.Now().Unix()
	for _, units := range []int64{5, 6, 2} {
		s.reserve(t, tb.name, units, units).check(t, accepted)
	}
	at := s.reservation(t, tb.name).number(3)
	conformance.True(t, at >= from, "last decrease at %d, the test began at %d", at, from)
}

// Quotas are off by default and exact when enabled.
func TestTableQuotaIsExact(t *testing.T) {
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
		check(t, s.create(newMeta(names[2], "pk1"), newOptions(-1, 1)), full) // an index counts as a table
		must(t, s.dropIndex(names[1], "i"))
		must(t, s.create(newMeta(names[2], "pk1"), newOptions(-1, 1)))
		check(t, s.addIndex(names[1], indexOn("i", []string{"pk1"}), false), full)
	})
	t.Run("there is no quota by default", func(t *testing.T) {
		t.Parallel()
		s := openService(t)
		for i := range 70 {
			must(t, s.create(newMeta(fmt.Sprintf("t%d", i), "pk1"), newOptions(-1, 1)))
		}
	})
}

func TestPredefinedColumnsAreAddedAndDeleted(t *testing.T) {
	spec(t, "3.3.8", "3.3.9")
	t.Parallel()
	r := openStore(t)
	a := tablestore.DefinedColumnSchema{Name: "a", ColumnType: tablestore.DefinedColumn_INTEGER}
	tb := r.newTable(t, tableOptions{defined: []tablestore.DefinedColumnSchema{a}})
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
	check(t, r.do(tb.put(tb.key("a", 1), c("b", 1))),
		invalid("Invalid column type for column b expect VT_STRING actual VT_INTEGER"))
	for what, v := range map[string]struct {
		err  error
		want refusal
	}{
		"none":              {add(), invalid("No defined column is specified.")},
		"one that is there": {add("c", "a"), invalid("Duplicated column name: 'a'.")},
		"one twice":         {add("c", "c"), invalid("Duplicated column name: 'c'.")},
		"one of the key":    {add("pk2"), invalid("Duplicated column name: 'pk2'.")},
		"a nameless one":    {add(""), invalid("Invalid column name: ''.")},
		"31 to two":         {add(append(many, "x")...), invalid("The number of defined columns must be in range: [0, 32].")},
		"a delete of none":  {remove(), invalid("No defined column is specified.")},
		"delete a stranger": {remove("a", "z"), invalid("Defined column 'z' does not exist.")},
		"delete one twice":  {remove("a", "a"), invalid("Duplicated column name: 'a'.")},
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
