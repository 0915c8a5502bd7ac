package collection

import (
	"runtime"
	"testing"
	"time"
)

func TestTheCollectorDoesAsUsualAfterItsFirstTime(t *testing.T) {
	t.Setenv("GOGC", "")
	chosen = false
	set := make(chan int, 2)
	firstLate(func(percent int) int { set <- percent; return 70 })
	if percent := <-set; percent < 200 {
		t.Errorf("before its first time the heap may grow by %d %%", percent)
	}
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		runtime.GC()
		select {
		case percent := <-set:
			if percent != 70 {
				t.Errorf("after its first time the heap may grow by %d %%", percent)
			}
			return
		default:
			if time.Now().After(deadline) {
				t.Fatal("a collection has changed nothing")
			}
		}
	}
}
