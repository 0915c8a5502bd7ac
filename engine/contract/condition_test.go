package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func TestExistenceConditionsDecideWhetherAWriteApplies(t *testing.T) {
	spec(t, "3.9.1")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	writes := map[string]func(*tablestore.PrimaryKey) tablestore.RowChange{
		"put":       func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.put(k, c("new", 1)) },
		"update":    func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.update(k, set("new", 1)) },
		"increment": func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.update(k, add("new", 1)) },
		"delete":    func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.delete(k) },
	}
	rules := map[string]struct {
		expect tablestore.RowExistenceExpectation
		exists bool
		want   refusal
	}{
		"ignoring a row that is there":         {ignore, true, accepted},
		"ignoring a row that is not there":     {ignore, false, accepted},
		"expecting a row that is there":        {expectExist, true, accepted},
		"expecting a row that is not there":    {expectExist, false, conditionFailed},
		"expecting no row where there is one":  {expectNotExist, true, conditionFailed},
		"expecting no row where there is none": {expectNotExist, false, accepted},
	}
	for write, change := range writes {
		for name, rule := range rules {
			for _, how := range []string{"alone", "in a batch"} {
				t.Run(write+" "+name+" "+how, func(t *testing.T) {
					k := tb.key(write+name+how, 1)
					if rule.exists {
						must(t, s.do(tb.put(k, c("old", 1))))
					}
					before := tb.values(t, k)
					conditional := expecting(rule.expect, change(k))
					if how == "alone" {
						check(t, s.do(conditional), rule.want)
					} else {
						rows := tb.rows(t, conditional, tb.put(tb.key("bystander", 1)))
						checkRow(t, rows[0], rule.want)
						checkRow(t, rows[1], accepted)
					}
					after := tb.values(t, k)
					switch {
					case rule.want != accepted:
						diff(t, after, before)
					case write == "delete":
						diff(t, after, (*row)(nil))
					default:
						diff(t, after.Cells[0], c("new", int64(1)))
						diff(t, len(after.Cells) == 2, rule.exists && write != "put")
					}
				})
			}
		}
	}
}

func TestARowWithoutColumnsExists(t *testing.T) {
	spec(t, "3.8.1", "3.8.4", "3.9.1")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	k := tb.key("a", 1)
	must(t, s.do(tb.put(k)))
	check(t, s.do(expecting(expectNotExist, tb.put(k))), conditionFailed)
	must(t, s.do(expecting(expectExist, tb.update(k, set("c", 1)))))
	must(t, s.do(tb.update(k, drop("c"))))
	check(t, s.do(expecting(expectNotExist, tb.put(k))), conditionFailed)
	must(t, s.do(expecting(expectExist, tb.delete(k))))
	check(t, s.do(expecting(expectExist, tb.delete(k))), conditionFailed)
	must(t, s.do(expecting(expectNotExist, tb.put(k))))
}

func TestOfManyThatExpectNoRowOneSucceeds(t *testing.T) {
	spec(t, "3.9.2")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	const writers = 16
	results := make(chan error, writers)
	for i := range writers {
		go func() { results <- s.do(expecting(expectNotExist, tb.put(tb.key("a", 1), c("writer", i)))) }()
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

func TestConcurrentIncrementsAreAllCounted(t *testing.T) {
	spec(t, "3.9.2")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	const writers, each = 8, 10
	results := make(chan error, writers)
	for range writers {
		go func() {
			for range each {
				if err := s.do(tb.update(tb.key("a", 1), add("n", 1))); err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	for range writers {
		must(t, <-results)
	}
	diff(t, tb.values(t, tb.key("a", 1)).Cells, []cell{c("n", int64(writers*each))})
}
