package collection

import (
	"runtime"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

func TestOnlyTheFirstCollectionIsDelayed(t *testing.T) {
	t.Setenv("GOGC", "")
	chosen = false
	set := make(chan int, 2)
	firstLate(func(percent int) int { set <- percent; return 70 })
	percent := <-set
	conformance.True(t, percent >= 200, "before its first time the heap may grow by %d %%", percent)
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		runtime.GC()
		select {
		case percent := <-set:
			conformance.Equal(t, percent, 70, "how much the heap may grow after its first time")
			return
		default:
			conformance.MustEqual(t, time.Now().After(deadline), false, "a collection has changed nothing")
		}
	}
}
