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
	s := proving(t, "3.9.1", "3.9.3", "3.9.4", "3.10.3")
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
	s := proving(t, "3.9.3", "3.9.5", "3.7.2")
	const day = 24 * 60 * 60
	tb := s.newTable(t, tableOptions{versions: 2, ttl: 5 * day, deviation: 100 * day})
	ago := func(days int64) int64 { return time.Now().UnixMilli() - days*day*1000 }
	k := tb.key("k", 1)
	at := ago(1)
	must(t, s.do(tb.put(k, v("a", 1, at), v("a", 2, at+1), v("a", 3, at+2), v("old", 1, ago(4)), c("b", 1))))
	must(t, s.alter(tb.name, newOptions(3*day, 2)))
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
			must(t, s.alter(tb.name, newOptions(days*day, 2)))
		}
		live(7)
		must(t, s.do(tb.put(gone, v("a", 1, ago(6)))))
		live(5)
		check(t, s.do(when(compare("a", eq, 1), tb.delete(gone))), conditionFailed)
		must(t, s.do(when(lenient(compare("a", eq, 2)), expecting(expectNotExist, tb.put(gone)))))
	})
}

// race has writers send changes at the same time, and returns how many of them are accepted; the others' conditions must fail.
func (tb *table) race(t *testing.T, writers int, change func(writer int) tablestore.RowChange) (accepted int) {
	t.Helper()
	results := make(chan error, writers)
	for i := range writers {
		go func() { results <- tb.do(change(i)) }()
	}
	for range writers {
		if err := <-results; err == nil {
			accepted++
		} else {
			check(t, err, conditionFailed)
		}
	}
	return accepted
}

func TestAConditionAndItsWriteAreOne(t *testing.T) {
	tb := proving(t, "3.9.2", "3.9.3").newTable(t, tableOptions{})
	const writers, steps = 8, 20
	t.Run("of many that expect no row one succeeds", func(t *testing.T) {
		diff(t, tb.race(t, 2*writers, func(i int) tablestore.RowChange {
			return expecting(expectNotExist, tb.put(tb.key("new", 1), c("writer", i)))
		}), 1)
	})
	t.Run("of many that compare and set one succeeds", func(t *testing.T) {
		k := tb.key("set", 1)
		must(t, tb.do(tb.put(k, c("ver", 0))))
		for step := range steps {
			diff(t, tb.race(t, writers, func(i int) tablestore.RowChange {
				if i%2 == 0 {
					return when(compare("ver", eq, step), tb.update(k, add("ver", 1), set("writer", i)))
				}
				return when(compare("ver", eq, step), tb.update(k, set("ver", step+1), set("writer", i)))
			}), 1)
		}
		diff(t, tb.values(t, k).Cells[0], c("ver", int64(steps)))
	})
	t.Run("increments are all counted", func(t *testing.T) {
		for range steps / 2 {
			diff(t, tb.race(t, writers, func(int) tablestore.RowChange { return tb.update(tb.key("sum", 1), add("n", 1)) }), writers)
		}
		diff(t, tb.values(t, tb.key("sum", 1)).Cells, []cell{c("n", int64(writers*steps/2))})
	})
}
