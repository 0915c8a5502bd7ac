package store

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/internal/conformance"
)

func TestAFlushWaitsUntilTheNextOneHasEnoughMemtables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather{after: 1, count: 3, most: time.Minute}
		var l pebble.EventListener
		g.listen(&l)
		flush := func() (done *atomic.Bool) {
			done = new(atomic.Bool)
			l.FlushBegin(pebble.FlushInfo{})
			go func() {
				l.TableCreated(pebble.TableCreateInfo{Reason: "flushing"})
				done.Store(true)
			}()
			synctest.Wait()
			return done
		}
		for range 2 {
			conformance.MustEqual(t, flush().Load(), true, "a flush waits while the store is opened")
		}
		g.flushes = 0
		g.hold(true)
		conformance.MustTrue(t, flush().Load(), "the first flush waits")
		first := flush()
		for range 3 {
			conformance.MustEqual(t, first.Load(), false, "the flush did not wait for three memtables")
			l.TableCreated(pebble.TableCreateInfo{Reason: "compacting"})
			l.WALCreated(pebble.WALCreateInfo{})
			synctest.Wait()
		}
		conformance.MustEqual(t, first.Load(), true, "the flush waits, although three memtables are full")
		second, began := flush(), time.Now()
		time.Sleep(g.most - time.Nanosecond)
		conformance.MustTrue(t, !second.Load(), "the flush continued after %v", time.Since(began))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		conformance.MustEqual(t, second.Load(), true, "the flush waits longer than it may")
		l.TableCreated(pebble.TableCreateInfo{Reason: "flushing"}) // its next file
		conformance.MustEqual(t, time.Since(began), g.most, "how long the flush was held back")
		third := flush()
		g.noteRead()
		synctest.Wait()
		conformance.MustEqual(t, third.Load(), true, "a flush waits, although rows are read")
		g.noteRead()
		conformance.MustTrue(t, flush().Load(), "a flush waits, although rows were read since the one before began")
		fourth := flush()
		conformance.MustEqual(t, fourth.Load(), false, "a flush does not wait, although no rows were read")
		g.hold(false)
		synctest.Wait()
		conformance.MustTrue(t, fourth.Load() && flush().Load(), "a flush waits, although the store is closed")
	})
}

func TestCloseDoesNotWaitForHeldFlush(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{})
	s.gather.after, s.gather.most = 0, 24*time.Hour // else the test would fail by its time
	tab := newTable(t, s, -1, 1)
	apply(t, s, tab, change(1, 1, at("c", "first", 0)))
	conformance.Must(t, conformance.ErrorOf(s.db.AsyncFlush()))
	apply(t, s, tab, change(1, 2, at("c", "second", 0)))
	must(t, s.Close())
	s = reopen(t, dir, Options{})
	defer s.Close()
	tab = s.Table([]byte("t"))
	for k, want := range []string{"first", "second"} {
		got, _, _ := strings.Cut(read(t, s, tab, int64(k+1)), "@")
		conformance.Equal(t, got, "c="+want, "row %d", k+1)
	}
}
