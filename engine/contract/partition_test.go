package contract

import (
	"bytes"
	endian "encoding/binary"
	"math"
	"net/http"
	"slices"
	"testing"
)

// Bounds of partitions, as values without a length prefix.
var (
	infMin = []byte{9}
	infMax = []byte{10}
)

func textBound(s string) []byte {
	return append(endian.LittleEndian.AppendUint32([]byte{3}, uint32(len(s))), s...)
}

func integerBound(n int64) []byte { return endian.LittleEndian.AppendUint64([]byte{0}, uint64(n)) }

// partitions are CreateTable's ranges that lie between the bounds.
func partitions(bounds ...[]byte) (m message) {
	for i := range len(bounds) - 1 {
		m = m.bytes(4, message{}.bytes(1, bounds[i]).bytes(2, bounds[i+1]))
	}
	return m
}

// shardSplits are the bounds that DescribeTable tells: each the value of a row of the partition key alone.
func (s *service) shardSplits(t testing.TB, table string) (bounds [][]byte) {
	t.Helper()
	a := s.send(t, rawRequest{operation: "DescribeTable", body: message{}.text(1, table)})
	a.check(t, accepted)
	for _, row := range parseOf(t, a.body)[6] {
		_, value, ok := bytes.Cut(row, []byte("pk1\x05"))
		if !ok || len(value) < 4 {
			t.Fatalf("a split is no row of pk1: %x", row)
		}
		size := endian.LittleEndian.Uint32(value)
		bounds = append(bounds, value[4:4+size])
	}
	return bounds
}

// CreateTable's partitions are the table's, and DescribeTable tells their bounds.
func TestATableIsCreatedInPartitions(t *testing.T) {
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
		r.send(t, rawRequest{operation: "CreateTable", body: create.body()}).check(t, accepted)
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

// Ranges that do not cover the keys, or are too many, are refused.
func TestPartitionsThatDoNotCoverTheKeysAreRefused(t *testing.T) {
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
		typ  int64 // of pk1; 0 is a text's
	}
	extreme := invalid("The value of partition range can not be INT64_MIN or INT64_MAX.")
	for name, v := range map[string]typed{
		"eleven":                    {partitions(eleven...), invalid("The count of partitions cannot be greater than 10"), 0},
		"no beginning":              {partitions(a, infMax), invalid("The first partition must begin at VT_INF_MIN."), 0},
		"no end":                    {partitions(infMin, a, b), invalid("The last partition must end at VT_INF_MAX."), 0},
		"a gap":                     {append(partitions(infMin, a), partitions(b, infMax)...), invalid("Partition 1 must begin where partition 0 ends."), 0},
		"an overlap":                {append(partitions(infMin, b), partitions(a, infMax)...), invalid("Partition 1 must begin where partition 0 ends."), 0},
		"the wrong order":           {append(partitions(a, infMax), partitions(infMin, a)...), invalid("The first partition must begin at VT_INF_MIN."), 0},
		"descending bounds":         {partitions(infMin, b, a, infMax), invalid("The begin of partition 1 must be less than its end."), 0},
		"an empty range":            {partitions(infMin, a, a, infMax), invalid("The begin of partition 1 must be less than its end."), 0},
		"an end in the middle":      {partitions(infMin, infMax, infMax), invalid("The begin of partition 1 must be less than its end."), 0},
		"an integer for a text":     {partitions(infMin, integerBound(1), infMax), invalid("The value type of partition does not match with primary key."), 0},
		"a binary for a text":       {partitions(infMin, []byte{7, 1, 0, 0, 0, 'a'}, infMax), invalid("The value type of partition does not match with primary key."), 0},
		"an empty text":             {partitions(infMin, textBound(""), infMax), invalid("The value of partition range can not be empty string."), 0},
		"a text that is none":       {partitions(infMin, textBound("\xff"), infMax), invalid("Value of column pk1 must be UTF8 encoding."), 0},
		"a text of 65 bytes":        {partitions(infMin, textBound(text(65)), infMax), invalid("The value of partition range exceeds the MaxLength:64 with CurrentLength:65."), 0},
		"a value that ends early":   {partitions(infMin, []byte{3, 9, 0, 0, 0, 'a'}, infMax), invalid("Invalid partition range: the bound is no value."), 0},
		"a value with more behind":  {partitions(infMin, append(textBound("a"), 1), infMax), invalid("Invalid partition range: the bound is no value."), 0},
		"no value":                  {partitions(infMin, nil, infMax), invalid("Invalid partition range: the bound is no value."), 0},
		"a range without its end":   {message{}.bytes(4, message{}.bytes(1, infMin)), invalid(""), 0},
		"a range without its begin": {message{}.bytes(4, message{}.bytes(2, infMax)), invalid(""), 0},
		"the least integer":         {partitions(infMin, integerBound(math.MinInt64), infMax), extreme, 1},
		"the greatest integer":      {partitions(infMin, integerBound(math.MaxInt64), infMax), extreme, 1},
		"an empty binary":           {partitions(infMin, []byte{7, 0, 0, 0, 0}, infMax), invalid("The value of partition range can not be empty binary."), 3},
		"a text for a binary":       {partitions(infMin, a, infMax), invalid("The value type of partition does not match with primary key."), 3},
		"a text of 64 bytes":        {partitions(infMin, textBound(text(64)), infMax), accepted, 0},
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

// Splits and the simulation build on the partitions a table was created with.
func TestASimulationBeginsWithTheTablesPartitions(t *testing.T) {
	spec(t, "5.1.2")
	t.Parallel()
	r := openStore(t)
	name := newTableName()
	create := newCreate(name)
	create.more = partitions(infMin, textBound("g"), textBound("p"), infMax)
	r.send(t, rawRequest{operation: "CreateTable", body: create.body()}).check(t, accepted)
	r.tell(t, "tables/"+name+"/split", `{"keys": ["k"]}`, http.StatusOK)
	want := [][]byte{textBound("g"), textBound("k"), textBound("p")}
	diff(t, r.shardSplits(t, name), want)
	t.Run("and a restart goes back to them", func(t *testing.T) {
		r.stop()
		r.start(t)
		diff(t, r.shardSplits(t, name), slices.Delete(want, 1, 2))
	})
}
