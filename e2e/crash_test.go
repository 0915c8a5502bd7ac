package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var kills = flag.Int("kills", 1, "how often TestKilledServersLoseNothingAcknowledged kills the server")

const crashWriters = 4

// crashWriter sends batches of its own rows and knows the outcome of each.
type crashWriter struct {
	table *table
	name  string
	rng   *rand.Rand
	next  int64
	want  map[int64]*row   // acknowledged, with the contents they must have
	maybe map[int64][]*row // in flight when the server died: any of these; nil: the row does not exist
	fault string           // what was refused by a server that was alive
	news  chan<- struct{}  // gets one for each batch acknowledged
}

// TestKilledServersLoseNothingAcknowledged kills the server again and again while clients write, and looks at every row
// after each restart: acknowledged ones are there bit for bit, those in flight whole or unchanged, no others.
func TestKilledServersLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	r := openStore(t)
	killServers(t, r, r.newTable(t), func(int) {})
}

// killServers kills and restarts the server while clients write, and looks at all rows then, with what else there is to check.
func killServers(t *testing.T, r *restartable, tb *table, check func(round int)) {
	rng := rand.New(rand.NewPCG(3, 3))
	writers := make([]*crashWriter, crashWriters)
	for i := range writers {
		writers[i] = &crashWriter{
			table: tb, name: fmt.Sprint("w", i), rng: rand.New(rand.NewPCG(4, uint64(i))),
			want: map[int64]*row{}, maybe: map[int64][]*row{},
		}
	}
	for round := range *kills {
		news := make(chan struct{}, 1<<16)
		var all sync.WaitGroup
		for _, w := range writers {
			w.news = news
			all.Go(w.run)
		}
		for range 1 + rng.IntN(30) {
			<-news
		}
		r.server.kill(t)
		all.Wait()
		r.start(t)
		rows := 0
		for _, w := range writers {
			w.check(t, round)
			rows += len(w.want)
		}
		if got := len(tb.all(t)); got != rows {
			t.Errorf("round %d: %d rows are there, %d are known", round, got, rows)
		}
		check(round)
		if t.Failed() {
			return
		}
	}
}

// run writes until the server is gone.
func (w *crashWriter) run() {
	for {
		changes, after := w.batch()
		before := map[int64]*row{}
		for k := range after {
			before[k] = w.want[k]
		}
		if !w.send(changes) {
			for k := range after {
				w.maybe[k] = []*row{before[k], after[k]}
			}
			return
		}
		for k, v := range after {
			if v == nil {
				delete(w.want, k)
			} else {
				w.want[k] = v
			}
		}
		w.news <- struct{}{}
	}
}

func (w *crashWriter) send(changes []tablestore.RowChange) bool {
	r, err := w.table.batch(changes...)
	if err != nil {
		return false
	}
	for _, row := range r.TableToRowsResult[w.table.name] {
		if !row.IsSucceed {
			w.fault = row.Error.Code + ": " + row.Error.Message
			return false
		}
	}
	return true
}

// batch is new rows, one that is replaced, one that is deleted and one whose columns are changed.
func (w *crashWriter) batch() ([]tablestore.RowChange, map[int64]*row) {
	var changes []tablestore.RowChange
	after := map[int64]*row{}
	put := func(k int64) {
		value, number := strings.Repeat(fmt.Sprint(w.rng.Uint64()), 1+w.rng.IntN(30)), w.rng.Int64()
		changes = append(changes, w.table.put(w.key(k), c("a", value), c("b", []byte(value)), c("n", number)))
		after[k] = &row{[]any{w.name, k}, []cell{c("a", value), c("b", []byte(value)), c("n", number)}}
	}
	for range 1 + w.rng.IntN(20) {
		put(w.next)
		w.next++
	}
	for i := range int64(3) {
		k := w.rng.Int64N(w.next)
		old := w.want[k]
		switch _, twice := after[k]; {
		case twice || old == nil:
		case i == 0:
			put(k)
		case i == 1:
			changes = append(changes, w.table.delete(w.key(k)))
			after[k] = nil
		default:
			changes = append(changes, w.table.update(w.key(k), set("n", w.next), drop("a")))
			cells := []cell{c("b", valueOf(old, "b")), c("n", w.next)}
			after[k] = &row{old.Key, cells}
		}
	}
	return changes, after
}

func valueOf(r *row, name string) any {
	for _, c := range r.Cells {
		if c.Name == name {
			return c.Value
		}
	}
	return nil
}

func (w *crashWriter) key(k int64) *tablestore.PrimaryKey { return w.table.key(w.name, k) }

// check compares the store with what is known, and notes the outcome of the rows that were in flight.
func (w *crashWriter) check(t *testing.T, round int) {
	t.Helper()
	if w.fault != "" {
		t.Errorf("round %d, %s: a row was refused: %s", round, w.name, w.fault)
	}
	got := map[int64]*row{}
	rows := w.table.scan(t, w.key(0), w.table.key(w.name, maxKey))
	for _, r := range rows {
		got[r.Key[1].(int64)] = r.untimed()
	}
	for k, either := range w.maybe {
		if r := got[k]; !sameRow(r, either[0]) && !sameRow(r, either[1]) {
			t.Errorf("round %d, %s: row %d in flight is %v, neither %v nor %v", round, w.name, k, r, either[0], either[1])
		}
		if got[k] == nil {
			delete(w.want, k)
		} else {
			w.want[k] = got[k]
		}
	}
	clear(w.maybe)
	if len(got) != len(w.want) {
		t.Errorf("round %d, %s: %d rows, want %d", round, w.name, len(got), len(w.want))
	}
	for k := range maps.Keys(w.want) {
		if !sameRow(got[k], w.want[k]) {
			t.Errorf("round %d, %s: row %d is %v, want %v", round, w.name, k, got[k], w.want[k])
		}
	}
}

func sameRow(a, b *row) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// TestTablesSurviveAKillWithoutSync: rows may be lost then, their table may not.
func TestTablesSurviveAKillWithoutSync(t *testing.T) {
	t.Parallel()
	r := &restartable{service: &service{}, store: filepath.Join(t.TempDir(), "store"), args: []string{"--sync", "none"}}
	r.start(t)
	tb := r.newTable(t)
	must(t, tb.do(tb.put(tb.key("a", 1), c("v", 1))))
	r.server.kill(t)
	r.start(t)
	describe(t, r.service, tb.name)
	must(t, tb.do(tb.put(tb.key("b", 1), c("v", 2))))
	r.server.stop(t)
	r.start(t)
	if rows := tb.scan(t, tb.key("b", 1), tb.key("b", 2)); len(rows) != 1 {
		t.Errorf("%d rows of a server that was stopped", len(rows))
	}
}

// restartable is an embedded store that outlives its servers.
type restartable struct {
	*service
	store  string
	args   []string // of serve, besides
	server *served
}

func openStore(t *testing.T) *restartable {
	t.Helper()
	r := &restartable{service: &service{}, store: filepath.Join(t.TempDir(), "store")}
	r.start(t)
	return r
}

// start serves the store; the service, and the tables that know it, talk to the new server from then on.
func (r *restartable) start(t *testing.T) {
	t.Helper()
	r.server = startServe(t, append([]string{"--quiet", "--store", r.store}, r.args...)...)
	p := r.server
	r.TableStoreClient = p.client()
}
