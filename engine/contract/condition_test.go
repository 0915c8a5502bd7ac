package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

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
