package contract

import (
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// when gives a change a condition on the columns of the row before it, or none.
func when(f tablestore.ColumnFilter, change tablestore.RowChange) tablestore.RowChange {
	if f == nil {
		return change
	}
	switch x := change.(type) {
	case *tablestore.PutRowChange:
		x.SetColumnCondition(f)
	case *tablestore.UpdateRowChange:
		x.SetColumnCondition(f)
	case *tablestore.DeleteRowChange:
		x.SetColumnCondition(f)
	}
	return change
}

func TestConditionsDecideWhetherAWriteApplies(t *testing.T) {
	spec(t, "3.9.1", "3.9.3", "3.9.4", "3.10.3")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	writes := map[string]func(*tablestore.PrimaryKey) tablestore.RowChange{
		"put":       func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.put(k, c("new", 1)) },
		"update":    func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.update(k, set("new", 1)) },
		"increment": func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.update(k, add("new", 1)) },
		"delete":    func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.delete(k) },
	}
	holds, fails := compare("ver", eq, 3), compare("ver", gt, 3)
	missing, missingPasses := compare("x", ne, 0), lenient(compare("x", eq, 0))
	rules := map[string]struct {
		condition tablestore.ColumnFilter
		expect    tablestore.RowExistenceExpectation
		exists    bool
		want      refusal
	}{
		"ignoring a row that is there":                           {nil, ignore, true, accepted},
		"ignoring a row that is not there":                       {nil, ignore, false, accepted},
		"expecting a row that is there":                          {nil, expectExist, true, accepted},
		"expecting a row that is not there":                      {nil, expectExist, false, conditionFailed},
		"expecting no row where there is one":                    {nil, expectNotExist, true, conditionFailed},
		"expecting no row where there is none":                   {nil, expectNotExist, false, accepted},
		"a condition that holds":                                 {holds, ignore, true, accepted},
		"a condition that does not":                              {fails, ignore, true, conditionFailed},
		"a missing column that fails":                            {missing, ignore, true, conditionFailed},
		"a missing column that passes":                           {missingPasses, ignore, true, accepted},
		"a condition on a row that is not there":                 {holds, ignore, false, conditionFailed},
		"one that may be missing on a row that is not there":     {lenient(compare("ver", eq, 9)), ignore, false, accepted},
		"the contrary of one that fails on no row":               {not(holds), ignore, false, accepted},
		"holding, and a row expected that is there":              {holds, expectExist, true, accepted},
		"failing, and a row expected that is there":              {fails, expectExist, true, conditionFailed},
		"passing, and a row expected that is not there":          {missingPasses, expectExist, false, conditionFailed},
		"passing, and no row expected where there is none":       {missingPasses, expectNotExist, false, accepted},
		"passing, and no row expected where there is one":        {missingPasses, expectNotExist, true, conditionFailed},
		"all of several":                                         {allOf(holds, compare("old", eq, "text"), not(fails)), ignore, true, accepted},
		"not all of several":                                     {allOf(holds, compare("old", eq, "other")), ignore, true, conditionFailed},
		"one of several":                                         {anyOf(fails, holds), ignore, true, accepted},
		"an expression that finds something":                     {matching(compare("old", eq, "ex"), "e.", tablestore.Variant_STRING), ignore, true, accepted},
		"an expression that finds nothing":                       {matching(compare("old", eq, "ex"), "q.", tablestore.Variant_STRING), ignore, true, conditionFailed},
		"a column that the write changes, by its value before":   {missingPasses, ignore, true, accepted},
		"a column that the write creates is missing before that": {compare("new", eq, 1), ignore, true, conditionFailed},
	}
	for write, change := range writes {
		for name, rule := range rules {
			for _, how := range []string{"alone", "in a batch"} {
				t.Run(write+" "+name+" "+how, func(t *testing.T) {
					k := tb.key(write+name+how, 1)
					if rule.exists {
						must(t, s.do(tb.put(k, c("old", "text"), c("ver", 3))))
					}
					before := tb.get(t, k)
					conditional := when(rule.condition, expecting(rule.expect, change(k)))
					if how == "alone" {
						check(t, s.do(conditional), rule.want)
					} else {
						rows := tb.rows(t, conditional, tb.put(tb.key("bystander", 1)))
						checkRow(t, rows[0], rule.want)
						checkRow(t, rows[1], accepted)
					}
					after := tb.get(t, k)
					switch {
					case rule.want != accepted:
						diff(t, after, before)
					case write == "delete":
						diff(t, after, (*row)(nil))
					default:
						diff(t, after.untimed().Cells[0], c("new", int64(1)))
						diff(t, len(after.Cells) == 3, rule.exists && write != "put")
					}
				})
			}
		}
	}
}

func TestAColumnConditionSeesWhatAReadWouldSee(t *testing.T) {
	spec(t, "3.9.3", "3.9.5", "3.7.2")
	t.Parallel()
	s := openService(t)
	const day = 24 * 60 * 60
	tb := s.newTable(t, tableOptions{versions: 2, ttl: 5 * day, deviation: 100 * day})
	ago := func(days int64) int64 { return time.Now().UnixMilli() - days*day*1000 }
	k := tb.key("k", 1)
	at := ago(1)
	must(t, s.do(tb.put(k, v("a", 1, at), v("a", 2, at+1), v("a", 3, at+2), v("old", 1, ago(4)), c("b", 1))))
	_, err := s.UpdateTable(&tablestore.UpdateTableRequest{TableName: tb.name, TableOption: newOptions(3*day, 2)})
	must(t, err)
	for name, x := range map[string]struct {
		condition tablestore.ColumnFilter
		want      refusal
	}{
		"the newest version":             {compare("a", eq, 3), accepted},
		"an older version":               {compare("a", eq, 2), conditionFailed},
		"any version":                    {anyVersion(compare("a", eq, 2)), accepted},
		"a surplus version":              {anyVersion(compare("a", eq, 1)), conditionFailed},
		"a version beyond its time":      {compare("old", eq, 1), conditionFailed},
		"and a missing column may pass":  {lenient(compare("old", eq, 2)), accepted},
		"the type counts":                {compare("a", eq, "3"), conditionFailed},
		"the type counts, also as false": {not(compare("a", eq, "3")), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s.do(when(x.condition, tb.update(k, set("z", 1)))), x.want)
			checkRow(t, tb.rows(t, when(x.condition, tb.update(k, set("z", 1))))[0], x.want)
		})
	}
	t.Run("the value of a key column", func(t *testing.T) {
		skipReal(t, s)
		must(t, s.do(when(compare("pk2", eq, 1), tb.update(k, set("z", 1)))))
		check(t, s.do(when(compare("pk2", eq, 2), tb.update(k, set("z", 1)))), conditionFailed)
		check(t, s.do(when(compare("pk2", eq, 9), tb.put(tb.key("k", 9)))), conditionFailed)
	})
	t.Run("all versions beyond their time: the row is not there", func(t *testing.T) {
		gone := tb.key("gone", 1)
		live := func(days int) {
			_, err := s.UpdateTable(&tablestore.UpdateTableRequest{TableName: tb.name, TableOption: newOptions(days*day, 2)})
			must(t, err)
		}
		live(7)
		must(t, s.do(tb.put(gone, v("a", 1, ago(6)))))
		live(5)
		check(t, s.do(when(compare("a", eq, 1), tb.delete(gone))), conditionFailed)
		must(t, s.do(when(lenient(compare("a", eq, 2)), expecting(expectNotExist, tb.put(gone)))))
	})
}

func TestAColumnConditionReadsTheKey(t *testing.T) {
	spec(t, "4.1.3")
	t.Parallel()
	s := openService(t)
	const str = tablestore.PrimaryKeyType_STRING
	tb := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{str, str, str, str}})
	key := func(last int) *tablestore.PrimaryKey { return tb.key(text(1024), text(1024), text(1024), text(last)) }
	const fits = 4096 - 4*3 - 3*1024
	passes := lenient(compare("x", eq, 1))
	for name, x := range map[string]struct {
		change tablestore.RowChange
		want   units
	}{
		"put, 4096 bytes":                    {when(passes, tb.put(key(fits))), units{1, 1}},
		"put, 4097 bytes":                    {when(passes, tb.put(key(fits+1))), units{2, 2}},
		"update, 4097 bytes and a column":    {when(passes, tb.update(key(fits+1), set("c", text(4095)))), units{2, 3}},
		"delete, 4096 bytes":                 {when(passes, tb.delete(key(fits))), units{1, 1}},
		"delete, 4097 bytes":                 {when(passes, tb.delete(key(fits+1))), units{2, 2}},
		"put, and something is expected too": {when(passes, expecting(expectExist, tb.put(key(fits+1)))), units{2, 2}},
		"put without a condition":            {tb.put(key(fits + 1)), units{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.do(tb.put(key(fits))))
			must(t, s.do(tb.put(key(fits+1))))
			got, err := s.units(x.change)
			must(t, err)
			diff(t, unitsOf(got), x.want)
			must(t, s.do(tb.put(key(fits))))
			must(t, s.do(tb.put(key(fits+1))))
			diff(t, unitsOf(tb.rows(t, x.change)[0].ConsumedCapacityUnit), x.want)
		})
	}
}

func TestRepeatedRowsTakeNoColumnCondition(t *testing.T) {
	spec(t, "3.10.4")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	k := tb.key("k", 1)
	passes := lenient(compare("x", eq, 1))
	refused := invalid("Repeated rows do not support row condition check in BatchModify.")
	for name, x := range map[string]struct {
		changes []tablestore.RowChange
		want    refusal
	}{
		"of the first":                  {[]tablestore.RowChange{when(passes, tb.put(k)), tb.put(k)}, refused},
		"of the last":                   {[]tablestore.RowChange{tb.put(k), tb.update(k, set("a", 1)), when(passes, tb.delete(k))}, refused},
		"an expectation is named first": {[]tablestore.RowChange{when(passes, expecting(expectExist, tb.put(k))), tb.put(k)}, invalid("Repeated rows do not support row exist expectation check in BatchModify.")},
		"of rows that are not repeated": {[]tablestore.RowChange{when(passes, tb.put(tb.key("l", 1))), when(passes, tb.put(tb.key("l", 2)))}, accepted},
	} {
		t.Run(name, func(t *testing.T) {
			bystander := tb.key(name, 2)
			_, err := tb.batch(append([]tablestore.RowChange{tb.put(bystander)}, x.changes...)...)
			check(t, err, x.want)
			diff(t, tb.get(t, bystander) != nil, x.want == accepted)
			diff(t, tb.get(t, k), (*row)(nil))
		})
	}
}

func TestInvalidColumnConditionsAreRefused(t *testing.T) {
	spec(t, "3.9.3", "3.9.7")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	leaf := lenient(compare("c", eq, 1))
	many := func(n int) []tablestore.ColumnFilter {
		list := make([]tablestore.ColumnFilter, n)
		for i := range list {
			list[i] = leaf
		}
		return list
	}
	for name, x := range map[string]struct {
		condition tablestore.ColumnFilter
		want      refusal
	}{
		"32 nodes":                       {anyOf(many(31)...), accepted},
		"33 nodes":                       {anyOf(many(32)...), invalid("The count of filter exceeds the max: 32.")},
		"AND of one":                     {allOf(leaf), invalid("Invalid AND/OR operator: the number of sub-filters must be more than 1.")},
		"NOT of two":                     {not(leaf, leaf), invalid("")},
		"a page of columns":              {pageOf(0, 1), invalid("")},
		"a page of columns inside":       {allOf(leaf, pageOf(0, 1)), invalid("")},
		"an expression of 256 bytes":     {matching(lenient(compare("c", eq, "")), text(256), tablestore.Variant_STRING), accepted},
		"an expression of 257 bytes":     {matching(lenient(compare("c", eq, "")), text(257), tablestore.Variant_STRING), invalid("")},
		"an expression that is none":     {matching(lenient(compare("c", eq, "")), "[", tablestore.Variant_STRING), invalid("")},
		"a column name of 256 bytes":     {compare(text(256), eq, 1), invalid("Invalid column name: '" + text(256) + "'.")},
		"bytes that are no message":      {rawFilter{0xff}, invalid("Deserialize filter failed.")},
		"no bytes are no condition":      {rawFilter{}, accepted},
		"a filter that has no parts yet": {rawFilter(message{}.int(1, 2).bytes(2, message{}.int(1, 2))), invalid("Invalid AND/OR operator: the number of sub-filters must be more than 1.")},
	} {
		t.Run(name, func(t *testing.T) {
			k := tb.key(name, 1)
			for how, change := range map[string]tablestore.RowChange{
				"put": tb.put(k), "update": tb.update(k, set("z", 1)), "delete": tb.delete(k),
			} {
				t.Run(how, func(t *testing.T) {
					check(t, s.do(when(x.condition, change)), x.want)
					// In a batch it is the whole request that is refused.
					bystander := tb.key(name+how, 2)
					_, err := tb.batch(tb.put(bystander), change)
					check(t, err, x.want)
					diff(t, tb.get(t, bystander) != nil, x.want == accepted)
				})
			}
		})
	}
}

// TestOfManyThatCompareAndSetOneSucceeds lets writers race for every step of a counter.
func TestOfManyThatCompareAndSetOneSucceeds(t *testing.T) {
	spec(t, "3.9.2", "3.9.3")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	k := tb.key("a", 1)
	must(t, s.do(tb.put(k, c("ver", 0))))
	const writers, steps = 8, 20
	for step := range steps {
		results := make(chan error, writers)
		for i := range writers {
			go func() {
				change := tb.update(k, set("ver", step+1), set("writer", i))
				if i%2 == 0 {
					change = tb.update(k, add("ver", 1), set("writer", i))
				}
				results <- s.do(when(compare("ver", eq, step), change))
			}()
		}
		successes := 0
		for range writers {
			if err := <-results; err == nil {
				successes++
			} else {
				check(t, err, conditionFailed)
			}
		}
		diff(t, successes, 1)
	}
	diff(t, tb.values(t, k).Cells[0], c("ver", int64(steps)))
}
