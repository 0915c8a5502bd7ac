package e2e

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// TestKilledServersLoseNothingAcknowledged kills the server again and again while clients write: what was acknowledged is there after each
// restart, of the batches in flight nothing but rows of theirs, and nothing else.
func TestKilledServersLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	const writers, rows = 4, 10
	store := filepath.Join(t.TempDir(), "store")
	s := startServe(t, "--quiet", "--store", store)
	name := s.service().newTable(t).name
	var acknowledged [writers]int // batches of each: rows of its own, and one that is overwritten
	for round := range *kills {
		tb := s.table(name)
		news := make(chan struct{}, 1<<16)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for ; ; acknowledged[w]++ {
					changes := []tablestore.RowChange{tb.put(tb.key(fmt.Sprint("w", w), -1), c("n", acknowledged[w]))}
					for i := range rows {
						key := tb.key(fmt.Sprint("w", w), acknowledged[w]*rows+i)
						changes = append(changes, tb.put(key, c("b", []byte{0, byte(i)}), c("n", acknowledged[w])))
					}
					r, err := tb.batch(changes...)
					if err != nil {
						return
					}
					for _, row := range r.TableToRowsResult[name] {
						if !row.IsSucceed {
							t.Errorf("a row was refused: %+v", row.Error)
						}
					}
					news <- struct{}{}
				}
			})
		}
		for range 1 + round*7%30 {
			<-news
		}
		s.kill(t)
		all.Wait()
		s = startServe(t, "--quiet", "--store", store)
		found := [writers]int{}
		for _, r := range s.table(name).all(t) {
			var w int
			fmt.Sscanf(r.Key[0].(string), "w%d", &w)
			at, n := r.Key[1].(int64), r.Cells[len(r.Cells)-1].Value.(int64)
			switch last := int64(acknowledged[w]); {
			case at < 0 && n != last && n != last-1, at >= 0 && (len(r.Cells) != 2 || n != at/rows || n > last):
				t.Errorf("round %d: row %v of %d batches", round, r, last)
			case at >= 0 && n < last:
				found[w]++
			}
		}
		for w, batches := range acknowledged {
			if found[w] != batches*rows {
				t.Errorf("round %d: writer %d has %d rows of %d batches", round, w, found[w], batches)
			}
		}
	}
}
