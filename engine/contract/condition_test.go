package contract

import "testing"

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
