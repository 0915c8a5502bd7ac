package contract

import (
	"bytes"
	endian "encoding/binary"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func TestTableLifecycle(t *testing.T) {
	s := proving(t, "1.2.1", "3.6.1", "3.6.2", "3.6.5", "3.6.6", "3.6.7")
	tb := s.newTable(t, tableOptions{versions: 3, ttl: 864000, deviation: 172800,
		keys: []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_STRING, tablestore.PrimaryKeyType_INTEGER,
			tablestore.PrimaryKeyType_BINARY, tablestore.PrimaryKeyType_STRING}})
	var others []string
	for range 12 {
		others = append(others, s.newTable(t, tableOptions{}).name)
	}
	other := &table{service: s, name: others[0]}
	t.Run("it is listed, by name", func(t *testing.T) {
		l := conformance.Try(s.ListTable()).Must(t)
		for _, name := range append(others, tb.name) {
			conformance.True(t, slices.Contains(l.TableNames, name) && slices.IsSorted(l.TableNames), "%v", l.TableNames)
		}
	})
	t.Run("it is described as it was created", func(t *testing.T) {
		d := describe(t, s, tb.name)
		diff(t, d.TableMeta.TableName, tb.name)
		var got []tablestore.PrimaryKeySchema
		for _, k := range d.TableMeta.SchemaEntry {
			got = append(got, *k)
		}
		diff(t, got, tb.keys)
		diff(t, options(d.TableOption), [3]int64{864000, 3, 172800})
		diff(t, *d.ReservedThroughput, tablestore.ReservedThroughput{})
	})
	t.Run("a deviation that is not given is one day", func(t *testing.T) {
		diff(t, options(describe(t, s, other.name).TableOption), [3]int64{-1, 1, 86400})
	})
	t.Run("an update changes the named options", func(t *testing.T) {
		r, err := s.UpdateTable(&tablestore.UpdateTableRequest{TableName: tb.name,
			TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 5}})
		must(t, err)
		diff(t, options(r.TableOption), [3]int64{-1, 5, 172800})
		diff(t, options(describe(t, s, tb.name).TableOption), [3]int64{-1, 5, 172800})
		diff(t, options(describe(t, s, other.name).TableOption), [3]int64{-1, 1, 86400})
	})
	t.Run("a second table with its name is refused", func(t *testing.T) {
		check(t, s.create(newMeta(tb.name, "pk1"), newOptions(-1, 1)), alreadyExists)
	})
	t.Run("a deleted table is gone", func(t *testing.T) {
		must(t, s.deleteTable(tb.name))
		check(t, s.describes(tb.name), noSuchTable)
		l := conformance.Try(s.ListTable()).Must(t)
		conformance.True(t, !slices.Contains(l.TableNames, tb.name) && slices.Contains(l.TableNames, other.name),
			"%v", l.TableNames)
	})
}

func TestRecreatedTableIsEmpty(t *testing.T) {
	s := proving(t, "3.6.7")
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("a", 1), c("v", 1))))
	must(t, s.deleteTable(tb.name))
	check(t, s.do(tb.put(tb.key("a", 1))), noSuchTable)
	must(t, s.create(newMeta(tb.name, "pk1", "pk2"), newOptions(-1, 1)))
	tb.keys[1].Type = ptr(tablestore.PrimaryKeyType_STRING)
	s.awaitTable(t, tb)
	diff(t, len(tb.all(t)), 0)
}

func (s *service) describes(table string) error {
	_, err := s.DescribeTable(&tablestore.DescribeTableRequest{TableName: table})
	return err
}

func (s *service) alter(table string, o *tablestore.TableOption) error {
	_, err := s.UpdateTable(&tablestore.UpdateTableRequest{TableName: table, TableOption: o})
	return err
}

func (s *service) deleteTable(table string) error {
	_, err := s.DeleteTable(&tablestore.DeleteTableRequest{TableName: table})
	return err
}

func options(o *tablestore.TableOption) [3]int64 {
	return [3]int64{int64(o.TimeToAlive), int64(o.MaxVersion), o.DeviationCellVersionInSec}
}

func newMeta(name string, keys ...string) *tablestore.TableMeta {
	m := &tablestore.TableMeta{TableName: name}
	for _, k := range keys {
		m.AddPrimaryKeyColumn(k, tablestore.PrimaryKeyType_STRING)
	}
	return m
}

func TestOperationsOnMissingTableFail(t *testing.T) {
	s := proving(t, "3.6.3")
	tb := &table{service: s, name: newTableName()}
	k := tb.key("a", 1)
	for name, do := range map[string]func() error{
		"DescribeTable": func() error { return s.describes(tb.name) },
		"UpdateTable":   func() error { return s.alter(tb.name, newOptions(-1, 1)) },
		"DeleteTable":   func() error { return s.deleteTable(tb.name) },
		"ComputeSplitPointsBySize": func() error {
			_, err := s.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: tb.name, SplitSize: 1})
			return err
		},
		"GetRow": func() error { _, _, err := tb.tryGet(k); return err },
		"GetRange": func() error {
			_, err := s.GetRange(ranged(tb.criteria(k), tablestore.FORWARD, tb.key("b", 1), 0))
			return err
		},
		"PutRow":    func() error { return s.do(tb.put(k)) },
		"UpdateRow": func() error { return s.do(tb.update(k, set("c", 1))) },
		"DeleteRow": func() error { return s.do(tb.delete(k)) },
	} {
		t.Run(name, func(t *testing.T) { check(t, do(), noSuchTable) })
	}
}

func TestTableNameRules(t *testing.T) {
	s := proving(t, "3.4.1")
	for name, ok := range map[string]bool{
		"": false, "1t": false, "t-1": false, "t.1": false, "表": false, "t t": false, "_": true, "T_9": true,
		text(255): true, text(256): false, // by hand, because the SDK refuses more than 100
	} {
		t.Run(name, func(t *testing.T) {
			if s.real && ok && len(name) < 10 {
				t.Skip("a name that another user of the instance may have")
			}
			want := accepted
			if !ok {
				want = invalid("Invalid table name: '" + name + "'.")
			} else {
				s.dropLater(t, name)
			}
			s.ask(t, "CreateTable", newCreate(name).body()).check(t, want)
			if !ok {
				for _, operation := range []string{"DescribeTable", "DeleteTable"} {
					s.ask(t, operation, message{}.text(1, name)).check(t, want)
				}
			}
		})
	}
}

type create struct {
	name                            string
	meta, throughput, options, more message
}

func newCreate(name string) *create {
	return &create{
		name:       name,
		meta:       message{}.text(1, name).bytes(2, message{}.text(1, "pk1").int(2, 2)),
		throughput: message{}.int(1, 0).int(2, 0),
		options:    message{}.int(1, -1).int(2, 1),
	}
}

func (r *create) body() message {
	return append(message{}.bytes(1, r.meta).bytes(2, message{}.bytes(1, r.throughput)).bytes(3, r.options), r.more...)
}

func (s *service) checkCreate(t *testing.T, change func(*create), want refusal) {
	t.Helper()
	r := newCreate(newTableName())
	change(r)
	s.ask(t, "CreateTable", r.body()).check(t, want)
	if want == accepted {
		s.dropLater(t, r.name)
	} else {
		check(t, s.describes(r.name), noSuchTable)
	}
}

func TestCreateTableRefusesInvalidDefinitions(t *testing.T) {
	s := proving(t, "3.1.5", "3.4.2", "3.6.1", "3.6.4", "3.6.9")
	pk := func(name string, typ int64) message { return message{}.text(1, name).int(2, typ) }
	key := func(name string, typ int64) func(*create) {
		return func(r *create) { r.meta = r.meta.bytes(2, pk(name, typ)) }
	}
	both := invalid("Both read and write capacity unit are required to create table.")
	keys := invalid("The number of primary key columns must be in range: [1, 4].")
	for name, v := range map[string]struct {
		change func(*create)
		want   refusal
	}{
		"a key column twice": {key("pk1", 1), invalid("Duplicated primary key name: 'pk1'.")},
		"five key columns": {func(r *create) {
			r.meta = r.meta.bytes(2, pk("b", 2)).bytes(2, pk("c", 2)).bytes(2, pk("d", 2)).bytes(2, pk("e", 2))
		}, keys},
		"no key column":        {func(r *create) { r.meta = r.meta[:2+r.meta[1]] }, keys},
		"a key without a name": {key("", 2), invalid("Invalid column name: ''.")},
		"a key of 256 bytes":   {key(text(256), 2), invalid("Invalid column name: '" + text(256) + "'.")},
		"a key of type DOUBLE": {key("d", 9), invalid("")},
		"no time to live": {func(r *create) { r.options = message{}.int(2, 1) },
			invalid("Time-to-live is missing while creating table.")},
		"no versions": {func(r *create) { r.options = message{}.int(1, -1) },
			invalid("MaxVersions is missing while creating table.")},
		"no read capacity":       {func(r *create) { r.throughput = message{}.int(2, 0) }, both},
		"no write capacity":      {func(r *create) { r.throughput = message{}.int(1, 0) }, both},
		"100,001 capacity units": {func(r *create) { r.throughput = message{}.int(1, 0).int(2, 100_001) }, invalid("")},
		"33 predefined columns": {func(r *create) {
			for i := range 33 {
				r.meta = r.meta.bytes(3, pk(strings.Repeat("d", i+1), 4))
			}
		}, invalid("")},
	} {
		t.Run(name, func(t *testing.T) { s.checkCreate(t, v.change, v.want) })
	}
}

func TestUpdateTableRefusesLikeCreateTable(t *testing.T) {
	s := proving(t, "1.2.4", "3.6.6", "3.6.9")
	tb := s.newTable(t, tableOptions{versions: 2})
	name := message{}.text(1, tb.name)
	for what, v := range map[string]struct {
		body message
		want refusal
	}{
		"nothing":              {name, invalid("")},
		"options without any":  {name.bytes(3, nil), invalid("No parameter is specified in table options.")},
		"a stream set off":     {name.bytes(4, message{}.int(1, 0)), accepted},
		"only the versions":    {name.bytes(3, message{}.int(2, 4)), accepted},
		"the time to live":     {name.bytes(3, message{}.int(1, 86400)), accepted},
		"a table name of none": {message{}.text(1, "t-").bytes(3, message{}.int(2, 4)), invalid("Invalid table name: 't-'.")},
	} {
		t.Run(what, func(t *testing.T) { s.ask(t, "UpdateTable", v.body).check(t, v.want) })
	}
	diff(t, options(describe(t, s, tb.name).TableOption), [3]int64{86400, 4, 86400})
}

func TestPredefinedColumnsKeepTheirType(t *testing.T) {
	s := proving(t, "3.3.8")
	tb := s.newTable(t, tableOptions{defined: []tablestore.DefinedColumnSchema{
		{Name: "i", ColumnType: tablestore.DefinedColumn_INTEGER}, {Name: "d", ColumnType: tablestore.DefinedColumn_DOUBLE},
		{Name: "b", ColumnType: tablestore.DefinedColumn_BOOLEAN}, {Name: "s", ColumnType: tablestore.DefinedColumn_STRING},
		{Name: "x", ColumnType: tablestore.DefinedColumn_BINARY},
	}})
	var got []tablestore.DefinedColumnSchema
	for _, d := range describe(t, s, tb.name).TableMeta.DefinedColumns {
		got = append(got, *d)
	}
	diff(t, len(got), 5)
	rows := tb.rows(t,
		tb.put(tb.key("a", 1), c("i", 1), c("d", 1.5), c("b", true), c("s", "s"), c("x", []byte{1}), c("free", 1)),
		tb.put(tb.key("a", 2), c("i", []byte{1})), tb.update(tb.key("a", 3), set("s", 1)),
		tb.update(tb.key("a", 4), set("free", "any type")))
	checkRow(t, rows[0], accepted)
	checkRow(t, rows[1], invalid("Invalid column type for column i expect VT_INTEGER actual VT_BLOB"))
	checkRow(t, rows[2], invalid("Invalid column type for column s expect VT_STRING actual VT_INTEGER"))
	checkRow(t, rows[3], accepted)
}

// infMin and infMax are the outermost bounds of partitions, encoded without a length prefix.
var (
	infMin = []byte{9}
	infMax = []byte{10}
)

func textBound(s string) []byte {
	return append(endian.LittleEndian.AppendUint32([]byte{3}, uint32(len(s))), s...)
}

func integerBound(n int64) []byte { return endian.LittleEndian.AppendUint64([]byte{0}, uint64(n)) }

func partitions(bounds ...[]byte) (m message) {
	for i := range len(bounds) - 1 {
		m = m.bytes(4, message{}.bytes(1, bounds[i]).bytes(2, bounds[i+1]))
	}
	return m
}

// shardSplits returns DescribeTable's bounds. Each is the value of a row that has only the partition key.
func (s *service) shardSplits(t testing.TB, table string) (bounds [][]byte) {
	t.Helper()
	a := s.ask(t, "DescribeTable", message{}.text(1, table))
	a.check(t, accepted)
	for _, row := range parseOf(t, a.body)[6] {
		_, value, ok := bytes.Cut(row, []byte("pk1\x05"))
		conformance.MustTrue(t, ok && len(value) >= 4, "a split is no row of pk1: %x", row)
		size := endian.LittleEndian.Uint32(value)
		bounds = append(bounds, value[4:4+size])
	}
	return bounds
}

// A table has the partitions given to CreateTable, and DescribeTable returns their bounds.
func TestTableIsCreatedWithPartitions(t *testing.T) {
	spec(t, "5.1.1", "5.1.2", "2.5.1")
	t.Parallel()
	r := openStore(t)
	nine := [][]byte{infMin}
	for i := range 9 {
		nine = append(nine, textBound(string(rune('a'+i))))
	}
	tables := map[string][][]byte{}
	for _, v := range []struct {
		typ    int64 // of pk1
		bounds [][]byte
	}{
		{2, [][]byte{infMin, infMax}},
		{2, [][]byte{infMin, textBound("m"), infMax}},
		{1, [][]byte{infMin, integerBound(-1<<63 + 1), integerBound(-7), integerBound(0), integerBound(1 << 40), infMax}},
		{3, [][]byte{infMin, {7, 1, 0, 0, 0, 0}, {7, 2, 0, 0, 0, 0, 0}, {7, 1, 0, 0, 0, 255}, infMax}},
		{2, append(nine, infMax)}, // ten
		{2, nil},
	} {
		name := newTableName()
		create := newCreate(name)
		create.meta = message{}.text(1, name).bytes(2, message{}.text(1, "pk1").int(2, v.typ))
		create.more = partitions(append(v.bounds, nil)[:len(v.bounds)]...)
		r.ask(t, "CreateTable", create.body()).check(t, accepted)
		tables[name] = nil
		if len(v.bounds) > 2 {
			tables[name] = v.bounds[1 : len(v.bounds)-1]
		}
	}
	for _, when := range []string{"at once", "after a restart"} {
		t.Run(when, func(t *testing.T) {
			for name, want := range tables {
				diff(t, r.shardSplits(t, name), want)
			}
		})
		r.losePower()
		r.start(t)
	}
}

func TestIncompletePartitionsAreRefused(t *testing.T) {
	s := proving(t, "5.1.2", "2.5.1")
	eleven := [][]byte{infMin}
	for i := range 10 {
		eleven = append(eleven, textBound(string(rune('a'+i))))
	}
	eleven = append(eleven, infMax)
	a, b := textBound("a"), textBound("b")
	type typed struct {
		more message
		want refusal
		typ  int64 // of pk1; 0 means STRING
	}
	extreme := invalid("The value of partition range can not be INT64_MIN or INT64_MAX.")
	apart := invalid("Partition 1 must begin where partition 0 ends.")
	descends := invalid("The begin of partition 1 must be less than its end.")
	otherType := invalid("The value type of partition does not match with primary key.")
	noValue := invalid("Invalid partition range: the bound is not a value.")
	for name, v := range map[string]typed{
		"eleven":       {partitions(eleven...), invalid("The count of partitions cannot be greater than 10"), 0},
		"no beginning": {partitions(a, infMax), invalid("The first partition must begin at VT_INF_MIN."), 0},
		"no end":       {partitions(infMin, a, b), invalid("The last partition must end at VT_INF_MAX."), 0},
		"a gap":        {append(partitions(infMin, a), partitions(b, infMax)...), apart, 0},
		"an overlap":   {append(partitions(infMin, b), partitions(a, infMax)...), apart, 0},
		"a wrong order": {append(partitions(a, infMax), partitions(infMin, a)...),
			invalid("The first partition must begin at VT_INF_MIN."), 0},
		"descending":       {partitions(infMin, b, a, infMax), descends, 0},
		"an empty range":   {partitions(infMin, a, a, infMax), descends, 0},
		"a middle end":     {partitions(infMin, infMax, infMax), descends, 0},
		"a text's integer": {partitions(infMin, integerBound(1), infMax), otherType, 0},
		"a text's binary":  {partitions(infMin, []byte{7, 1, 0, 0, 0, 'a'}, infMax), otherType, 0},
		"an empty text": {partitions(infMin, textBound(""), infMax),
			invalid("The value of partition range can not be empty string."), 0},
		"a broken text": {partitions(infMin, textBound("\xff"), infMax),
			invalid("Value of column pk1 must be UTF8 encoding."), 0},
		"65 bytes": {partitions(infMin, textBound(text(65)), infMax),
			invalid("The value of partition range exceeds the MaxLength:64 with CurrentLength:65."), 0},
		"a cut value":    {partitions(infMin, []byte{3, 9, 0, 0, 0, 'a'}, infMax), noValue, 0},
		"bytes after it": {partitions(infMin, append(textBound("a"), 1), infMax), noValue, 0},
		"no value":       {partitions(infMin, nil, infMax), noValue, 0},
		"an open end":    {message{}.bytes(4, message{}.bytes(1, infMin)), invalid(""), 0},
		"an open begin":  {message{}.bytes(4, message{}.bytes(2, infMax)), invalid(""), 0},
		"the least":      {partitions(infMin, integerBound(math.MinInt64), infMax), extreme, 1},
		"the greatest":   {partitions(infMin, integerBound(math.MaxInt64), infMax), extreme, 1},
		"an empty binary": {partitions(infMin, []byte{7, 0, 0, 0, 0}, infMax),
			invalid("The value of partition range can not be empty binary."), 3},
		"a binary's text": {partitions(infMin, a, infMax), otherType, 3},
		"64 bytes":        {partitions(infMin, textBound(text(64)), infMax), accepted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s.checkCreate(t, func(r *create) {
				r.more = v.more
				if v.typ != 0 {
					r.meta = message{}.text(1, r.name).bytes(2, message{}.text(1, "pk1").int(2, v.typ))
				}
			}, v.want)
		})
	}
}

// Split points and the simulation start from the initial partitions of a table.
func TestSimulationStartsWithTablePartitions(t *testing.T) {
	spec(t, "5.1.2")
	t.Parallel()
	r := openStore(t)
	name := newTableName()
	create := newCreate(name)
	create.more = partitions(infMin, textBound("g"), textBound("p"), infMax)
	r.ask(t, "CreateTable", create.body()).check(t, accepted)
	r.tell(t, "tables/"+name+"/split", `{"keys": ["k"]}`, http.StatusOK)
	want := [][]byte{textBound("g"), textBound("k"), textBound("p")}
	diff(t, r.shardSplits(t, name), want)
	t.Run("a restart restores them", func(t *testing.T) {
		r.stop()
		r.start(t)
		diff(t, r.shardSplits(t, name), slices.Delete(want, 1, 2))
	})
}
