package contract

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"
)

// lastTimestamp is the highest timestamp. allTime is the largest deviation, which allows every timestamp.
const (
	lastTimestamp = math.MaxInt64/1000 - 1
	allTime       = math.MaxInt64 / 1_000_000
)

var outOfTime = invalid("Timestamp must be in range [0, INT64_MAX/1000).")

func TestTimestampLimits(t *testing.T) {
	s := proving(t, "3.3.5", "3.3.6", "3.7.1", "3.6.9")
	tb := s.newTable(t, tableOptions{versions: 3, deviation: allTime})
	stamped := func(ts int64, op byte) wireRow {
		c := wireCell{name: "c", value: vInt(1), ts: ts, stamped: true, op: op}
		if op != 0 {
			c.value = nil
		}
		return wireRow{key: wireKey(fmt.Sprint(ts, op), 1), cells: []wireCell{c}}
	}
	for name, v := range map[string]struct {
		ts   int64
		want refusal
	}{
		"0": {0, accepted}, "1": {1, accepted}, "-1": {-1, outOfTime}, "the least integer": {math.MinInt64, outOfTime},
		"the last": {lastTimestamp, accepted}, "one more": {lastTimestamp + 1, outOfTime},
		"the greatest integer": {math.MaxInt64, outOfTime},
	} {
		t.Run(name, func(t *testing.T) {
			for _, row := range []wireRow{stamped(v.ts, 0), stamped(v.ts, 3)} {
				s.ask(t, "UpdateRow", rawPut(tb.name, row.encode(), 0)).check(t, v.want)
			}
			s.ask(t, "PutRow", rawPut(tb.name, stamped(v.ts, 0).encode(), 0)).check(t, v.want)
			// A read of that timestamp finds the cell, or is refused like the write.
			key := wireRow{key: stamped(v.ts, 0).key}.encode()
			read := v.want
			if v.ts < 0 {
				read = invalid("Specific timestamp cannot be less than 0.")
			}
			a := s.ask(t, "GetRow", message{}.text(1, tb.name).bytes(2, key).bytes(4, message{}.int(3, v.ts)))
			a.check(t, read)
			if v.want == accepted {
				diff(t, a.body, []byte(consumed(1, 1, 0).bytes(2, stamped(v.ts, 0).encode())))
			}
		})
	}
	t.Run("the last cell of a column and timestamp wins", func(t *testing.T) {
		k := tb.key("twice", 1)
		must(t, s.do(tb.put(k, v("c", 1, 5), v("c", 2, 5), v("c", 3, 4))))
		diff(t, tb.get(t, k, versions(3)).Cells, []cell{v("c", int64(2), 5), v("c", int64(3), 4)})
		must(t, s.do(tb.update(k, setAt("c", 7, 4), setAt("c", 8, 4))))
		diff(t, tb.get(t, k, versions(3)).Cells, []cell{v("c", int64(2), 5), v("c", int64(8), 4)})
	})
}

// rawRead holds the options of a read. It is encoded by hand, because the SDK requires a version rule.
type rawRead struct {
	time     message
	versions int64 // 0 means none is sent, -1 sends 0
	columns  []string
	filter   tablestore.ColumnFilter
}

// send reads a row with each of the three read operations and returns GetRow's answer.
func (r rawRead) send(t *testing.T, tb *table, want refusal) *answer {
	t.Helper()
	ask := func(operation string, body message, time, versions, columns, filter int, want refusal) *answer {
		t.Helper()
		if r.time != nil {
			body = body.bytes(time, r.time)
		}
		if r.versions != 0 {
			body = body.int(versions, max(0, r.versions))
		}
		for _, c := range r.columns {
			body = body.text(columns, c)
		}
		if r.filter != nil {
			body = body.bytes(filter, r.filter.Serialize())
		}
		if operation == "BatchGetRow" {
			body = message{}.bytes(1, body)
		}
		a := tb.ask(t, operation, body)
		a.check(t, want)
		return a
	}
	key, name := wireRow{key: wireKey("a", 1)}.encode(), message{}.text(1, tb.name)
	ask("GetRange", name.int(2, 0).bytes(7, key).bytes(8, wireRow{key: wireKey("a", 2)}.encode()), 4, 5, 3, 10, want)
	inBatch := want
	if inBatch.message == "No version condition is specified." {
		inBatch.message = "No version condition is specified while querying row."
	}
	ask("BatchGetRow", name.bytes(2, key), 5, 6, 4, 8, inBatch)
	return ask("GetRow", name.bytes(2, key), 4, 5, 3, 7, want)
}

// Errors in the column names and the filter of a read are reported before a missing version rule.
func TestReadsMustSelectVersions(t *testing.T) {
	s := proving(t, "3.5.4", "3.5.6", "3.11.1", "3.11.2")
	tb := s.newTable(t, tableOptions{deviation: allTime})
	must(t, s.do(tb.put(tb.key("a", 1), v("c", 1, 5))))
	both := invalid("Start and end time must be given at the same time.")
	none := invalid("No version condition is specified.")
	zero := invalid("The maximum versions cannot be less than or equal to 0")
	many := slices.Repeat([]string{"c"}, 1025)
	tooWide := invalid("The number of columns from the request exceeds the limit, limit count: 1024, column count: 1025.")
	manyFilters := invalid("The count of filter exceeds the max: 32.")
	leaf := compare("a", eq, 1)
	wide := anyOf(slices.Repeat([]tablestore.ColumnFilter{leaf}, 40)...)
	for name, v := range map[string]struct {
		rawRead
		want  refusal
		found bool
	}{
		"a millisecond":        {rawRead{time: message{}.int(1, 5).int(2, 6)}, accepted, true},
		"the one before":       {rawRead{time: message{}.int(1, 4).int(2, 5)}, accepted, false},
		"from 0 on":            {rawRead{time: message{}.int(1, 0).int(2, 6)}, accepted, true},
		"all there is":         {rawRead{time: message{}.int(1, 0).int(2, lastTimestamp+1)}, accepted, true},
		"a range and versions": {rawRead{time: message{}.int(1, 0).int(2, 6), versions: 1}, accepted, true},
		"no length":            {rawRead{time: message{}.int(1, 5).int(2, 5)}, invalid(""), false},
		"backward":             {rawRead{time: message{}.int(1, 6).int(2, 5)}, invalid(""), false},
		"from before 0":        {rawRead{time: message{}.int(1, -1).int(2, 6)}, invalid(""), false},
		"a start alone":        {rawRead{time: message{}.int(1, 5)}, both, false},
		"an end alone":         {rawRead{time: message{}.int(2, 5)}, both, false},
		"one time":             {rawRead{time: message{}.int(3, 5)}, accepted, true},
		"one time and a range": {rawRead{time: message{}.int(1, 0).int(2, 6).int(3, 5)}, invalid(""), false},
		"one time and versions": {rawRead{time: message{}.int(3, 5), versions: 1},
			invalid("Specific tiemstamp and max versions cannot be given at the same time."), false},
		"a range of nothing":      {rawRead{time: message{}}, none, false},
		"nothing":                 {rawRead{}, none, false},
		"versions of 0":           {rawRead{versions: -1}, zero, false},
		"0 versions and a range":  {rawRead{time: message{}.int(1, 0).int(2, 6), versions: -1}, zero, false},
		"all an int32's versions": {rawRead{versions: math.MaxInt32}, accepted, true},
		"1024 columns":            {rawRead{versions: 1, columns: many[:1024]}, accepted, true},
		"1025 columns":            {rawRead{versions: 1, columns: many}, tooWide, false},
		"256 bytes of a name": {rawRead{versions: 1, columns: []string{text(256)}},
			invalid("Invalid column name: '" + text(256) + "'."), false},
		"a bad name":           {rawRead{columns: []string{"#a"}}, invalid("Invalid column name: '#a'."), false},
		"1025 and no versions": {rawRead{columns: many}, tooWide, false},
		"40 filters":           {rawRead{filter: wide}, manyFilters, false},
		"a NOT of two": {rawRead{filter: not(leaf, leaf)},
			invalid("Invalid NOT operator: the number of sub-filters must be 1."), false},
		"that and 40 filters": {rawRead{filter: allOf(not(leaf, leaf), wide)}, manyFilters, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := v.send(t, tb, v.want)
			if v.want == accepted {
				row := wireRow{key: wireKey("a", 1)}
				if v.found {
					row.cells = []wireCell{{name: "c", value: vInt(1), ts: 5, stamped: true}}
				}
				diff(t, a.body, []byte(consumed(1, 1, 0).bytes(2, row.encode())))
			}
		})
	}
}

func TestTableOptionLimits(t *testing.T) {
	s := proving(t, "3.6.6", "3.6.9")
	tb := s.newTable(t, tableOptions{})
	late := invalid("The maximum deviation must be in range [0, INT64_MAX/1000000].")
	ttl := invalid("TimeToLive cannot be 0 or less than -1.")
	count := invalid("The maximum versions cannot be less than or equal to 0")
	for name, v := range map[string]struct {
		options message
		want    refusal
	}{
		"a deviation of 0":              {message{}.int(5, 0), late},
		"a deviation of 1 second":       {message{}.int(5, 1), accepted},
		"the longest deviation":         {message{}.int(5, allTime), accepted},
		"a second more":                 {message{}.int(5, allTime+1), late},
		"a time to live of 1":           {message{}.int(1, 1), accepted},
		"the longest time to live":      {message{}.int(1, math.MaxInt32), accepted},
		"no end of the time to live":    {message{}.int(1, -1), accepted},
		"the least time to live":        {message{}.int(1, math.MinInt32), ttl},
		"a time to live of 0":           {message{}.int(1, 0), ttl},
		"a time to live of -2":          {message{}.int(1, -2), ttl},
		"1 version":                     {message{}.int(2, 1), accepted},
		"as many as an int32 says":      {message{}.int(2, math.MaxInt32), accepted},
		"the least number of versions":  {message{}.int(2, math.MinInt32), count},
		"0 versions":                    {message{}.int(2, 0), count},
		"a deviation of -1":             {message{}.int(5, -1), late},
		"one right and one wrong":       {message{}.int(2, 9).int(5, 0), late},
		"all of them, and all are fine": {message{}.int(1, 86400).int(2, 9).int(5, 77), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			update := func(options message) *answer { // by hand, because the SDK always sends two options
				return s.ask(t, "UpdateTable", message{}.text(1, tb.name).bytes(3, options))
			}
			update(message{}.int(1, 864000).int(2, 5).int(5, 99)).check(t, accepted)
			update(v.options).check(t, v.want)
			if v.want != accepted {
				diff(t, options(describe(t, s, tb.name).TableOption), [3]int64{864000, 5, 99})
			}
			r := newCreate(newTableName())
			for _, f := range []struct {
				field   int
				missing int64
			}{{1, -1}, {2, 1}} { // CreateTable requires options that UpdateTable can omit
				if parseOf(t, v.options)[protowire.Number(f.field)] == nil {
					v.options = v.options.int(f.field, f.missing)
				}
			}
			r.options = v.options
			s.ask(t, "CreateTable", r.body()).check(t, v.want)
		})
	}
}

func TestForbiddenUpdatesAreRefused(t *testing.T) {
	s := proving(t, "3.6.8", "3.10.3")
	tb := s.newTable(t, tableOptions{more: func(o *tablestore.TableOption) { o.AllowUpdate = ptr(false) }})
	k := tb.key("a", 1)
	want := invalid("Update operation is not allowed in this table")
	must(t, s.do(tb.put(k, c("n", 1))))
	for what, steps := range map[string][]step{"put": {set("c", 1)}, "increment": {add("n", 1)}, "drop": {drop("n")}} {
		t.Run(what+" is refused", func(t *testing.T) {
			check(t, s.do(tb.update(k, steps...)), want)
			rows := tb.rows(t, tb.update(k, steps...), tb.put(tb.key("b", 1)))
			checkRow(t, rows[0], want)
			checkRow(t, rows[1], accepted)
		})
	}
	diff(t, tb.values(t, k).Cells, []cell{c("n", int64(1))})
	d := s.ask(t, "DescribeTable", message{}.text(1, tb.name))
	forbidden := message{}.bytes(3, message{}.int(1, -1).int(2, 1).int(5, 86400).int(6, 0).int(7, 0))
	conformance.True(t, s.real || bytes.Contains(d.body, forbidden), "%x does not say that updates are forbidden", d.body)
	t.Run("updates can be allowed again", func(t *testing.T) {
		s.ask(t, "UpdateTable", message{}.text(1, tb.name).bytes(3, message{}.int(6, 1))).check(t, accepted)
		must(t, s.do(tb.update(k, add("n", 1))))
		must(t, s.do(tb.delete(k)))
	})
}

func TestIncrementAddsVersion(t *testing.T) {
	s := proving(t, "3.8.6", "3.10.3", "4.1.7")
	tb := s.newTable(t, tableOptions{versions: 3})
	k, at := tb.key("a", 1), time.Now().Add(-time.Hour).UnixMilli()
	must(t, s.do(tb.put(k, v("n", 30, at-1), v("n", 40, at), v("s", "text", at), v("d", 1.5, at),
		v("max", int64(math.MaxInt64), at), v("min", int64(math.MinInt64), at))))
	must(t, s.do(tb.update(k, add("n", 2))))
	cells := tb.get(t, k, columns("n"), versions(9)).Cells
	diff(t, (&row{Cells: cells}).untimed().Cells, []cell{c("n", int64(42)), c("n", int64(40)), c("n", int64(30))})
	conformance.True(t, cells[0].Timestamp > at+1, "%+v is not of now", cells[0])
	for name, steps := range map[string][]step{
		"of text": {add("s", 1)}, "of a double": {add("d", 1)}, "beyond the greatest": {add("max", 1)},
		"below the least": {add("min", -1)},
	} {
		t.Run(name+" fails its row alone", func(t *testing.T) {
			check(t, s.do(tb.update(k, steps...)), invalid(""))
			rows := tb.rows(t, tb.put(tb.key(name, 1)), tb.update(k, append(steps, set("new", 1))...))
			checkRow(t, rows[0], accepted)
			checkRow(t, rows[1], invalid(""))
			diff(t, tb.get(t, k, columns("new")), (*row)(nil))
		})
	}
	t.Run("up to the largest and the smallest integer", func(t *testing.T) {
		must(t, s.do(tb.update(k, add("max", 0), add("min", 0), add("zero", math.MaxInt64))))
		diff(t, (&row{Cells: tb.get(t, k, columns("max", "min", "zero")).Cells}).untimed().Cells,
			[]cell{c("max", int64(math.MaxInt64)), c("min", int64(math.MinInt64)), c("zero", int64(math.MaxInt64))})
	})
}

// A row of this test has a key of 15 bytes, and one column with a one-byte name and a string as its value.
func TestPageEndsAtExactByteLimit(t *testing.T) {
	s := proving(t, "3.11.8", "4.1.5")
	tb := s.newTable(t, tableOptions{})
	const half = 2<<20 - keyBytes - 1
	for p, second := range map[string]int{"k": half, "l": half - 17, "m": half - 16} {
		must(t, s.do(tb.put(tb.key(p, 1), c("c", text(half)))))
		must(t, s.do(tb.put(tb.key(p, 2), c("c", text(second)))))
		must(t, s.do(tb.put(tb.key(p, 3), c("c", "x"))))
	}
	for name, v := range map[string]struct {
		partition string
		rows      int
		units     int32
		next      []any
	}{
		"4 MB end it":               {"k", 2, 1024, []any{"k", int64(3)}},
		"rows of 4 MB are a page":   {"l", 3, 1024, nil},
		"a byte more begins one":    {"m", 2, 1024, []any{"m", int64(3)}},
		"what follows is a new one": {"k", 1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			start := tb.key(v.partition, minKey)
			if v.rows == 1 {
				start = tb.key(v.partition, 3)
			}
			r := tb.page(t, tablestore.FORWARD, tb.key(v.partition, maxKey), 0, start)
			diff(t, len(r.Rows), v.rows)
			diff(t, unitsOf(r.ConsumedCapacityUnit), units{v.units, 0})
			diff(t, keyValues(r.NextStartPrimaryKey), v.next)
		})
	}
	t.Run("unselected columns do not count", func(t *testing.T) {
		_, pages := tb.scan(t, tablestore.FORWARD, tb.key("k", minKey), tb.key("k", maxKey), 0, columns("pk1"))
		diff(t, pages, []int{3})
	})
}

// In a table created with UpdateFullRow, an update replaces the row, so columns that it does not name are removed.
func TestUpdateFullRow(t *testing.T) {
	s := proving(t, "3.6.11")
	tb := s.newTable(t, tableOptions{})
	for _, full := range []bool{false, true} {
		check(t, s.alter(tb.name, &tablestore.TableOption{TimeToAlive: -1, UpdateFullRow: &full}),
			invalid("The table options of UpdateTable can not contain updateFullRow."))
	}
	whole := s.newTable(t, tableOptions{more: func(o *tablestore.TableOption) { o.UpdateFullRow = ptr(true) }})
	d := describe(t, s, whole.name)
	if o := d.TableOption; o.UpdateFullRow == nil || !*o.UpdateFullRow || o.AllowUpdate == nil || !*o.AllowUpdate {
		t.Errorf("the table is described as %+v", o)
	}
	k := whole.key("a", 1)
	must(t, s.do(whole.put(k, c("a", 1), c("b", 2), c("n", 3))))
	must(t, s.do(whole.update(k, set("a", 5), add("n", 1))))
	diff(t, whole.values(t, k).Cells, []cell{c("a", int64(5)), c("n", int64(4))})
	must(t, s.do(whole.update(k, drop("n"))))
	diff(t, len(whole.values(t, k).Cells), 0)
}
