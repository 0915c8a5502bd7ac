//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
)

func TestDataSurvivesARestart(t *testing.T) {
	spec(t, "3.8.9")
	t.Parallel()
	for name, end := range map[string]func(*served, testing.TB){"by SIGTERM": (*served).stop, "by SIGKILL": (*served).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openStore(t)
			tb := r.newTable(t, tableOptions{versions: 2})
			gone := r.newTable(t, tableOptions{})
			must(t, r.do(gone.put(gone.key("a", 1))))
			_, err := r.DeleteTable(&tablestore.DeleteTableRequest{TableName: gone.name})
			must(t, err)
			_, err = r.UpdateTable(&tablestore.UpdateTableRequest{TableName: tb.name, TableOption: newOptions(864000, 3)})
			must(t, err)
			tb.load(t,
				tb.put(tb.key("put", 1), c("b", []byte{0, 255}), c("d", 0.5), c("i", -7), c("s", "表\x00"), c("t", true)),
				tb.put(tb.key("deleted", 1)), tb.put(tb.key("empty", 1)), tb.update(tb.key("updated", 1), set("a", 1)))
			must(t, r.do(tb.delete(tb.key("deleted", 1))))
			must(t, r.do(tb.update(tb.key("updated", 1), set("a", 2), add("n", 5))))
			read := func() (rows []*row) {
				rows, _ = tb.scan(t, tablestore.FORWARD, tb.key(minKey, minKey), tb.key(maxKey, maxKey), 0, versions(3))
				return rows
			}
			before := read()
			for range 2 {
				end(r.server, t)
				r.start(t)
				diff(t, read(), before)
				diff(t, options(describe(t, r.service, tb.name).TableOption), [3]int64{864000, 3, 86400})
				check(t, r.do(gone.put(gone.key("a", 1))), noSuchTable)
			}
			t.Run("and a table of a deleted one's name is empty", func(t *testing.T) {
				must(t, r.create(newMeta(gone.name, "pk1", "pk2"), newOptions(-1, 1)))
				diff(t, len(gone.all(t)), 0)
			})
		})
	}
}

// TestAcknowledgedWritesSurvive ends the server in the middle of writes by several clients.
func TestAcknowledgedWritesSurvive(t *testing.T) {
	spec(t, "3.8.9")
	t.Parallel()
	for name, end := range map[string]func(*served, testing.TB){"SIGTERM": (*served).stop, "SIGKILL": (*served).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openStore(t)
			tb := r.newTable(t, tableOptions{})
			const writers, enough = 4, 40
			acknowledged := make([]int, writers)
			progress := make(chan bool, 1_000_000)
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for {
						n := acknowledged[w]
						if _, err := tb.batch(tb.put(tb.key(fmt.Sprint(w), n), c("n", n)), tb.update(tb.key(fmt.Sprint(w), -1), set("last", n))); err != nil {
							return
						}
						acknowledged[w]++
						progress <- true
					}
				})
			}
			for range enough {
				<-progress
			}
			end(r.server, t)
			all.Wait()
			r.start(t)
			for w, n := range acknowledged {
				rows, _ := tb.scan(t, tablestore.FORWARD, tb.key(fmt.Sprint(w), 0), tb.key(fmt.Sprint(w), maxKey), 0)
				if len(rows) != n && len(rows) != n+1 { // the one in flight may be there
					t.Errorf("writer %d: %d batches were acknowledged, %d are there", w, n, len(rows))
				}
				for i, got := range rows {
					if want := (&row{[]any{fmt.Sprint(w), int64(i)}, []cell{c("n", int64(i))}}); !cmp.Equal(got.untimed(), want) {
						t.Fatalf("writer %d: got %v, want %v", w, got, want)
					}
				}
				diff(t, tb.values(t, tb.key(fmt.Sprint(w), -1)).Cells, []cell{c("last", int64(len(rows)-1))})
			}
		})
	}
}

// TestTablesSurviveAKillWithoutSync: rows may be lost then, their table may not.
func TestTablesSurviveAKillWithoutSync(t *testing.T) {
	spec(t, "3.8.9", "3.6.5")
	t.Parallel()
	r := &restartable{service: &service{}, store: filepath.Join(t.TempDir(), "store"), args: []string{"--sync", "none"}}
	r.start(t)
	tb := r.newTable(t, tableOptions{})
	must(t, r.do(tb.put(tb.key("a", 1), c("v", 1))))
	r.server.kill(t)
	r.start(t)
	describe(t, r.service, tb.name)
	must(t, r.do(tb.put(tb.key("b", 1), c("v", 2))))
	r.server.stop(t)
	r.start(t)
	diff(t, tb.values(t, tb.key("b", 1)).Cells, []cell{c("v", int64(2))})
}

func TestAStoreHasOneServer(t *testing.T) {
	spec(t, "1.1.6")
	t.Parallel()
	r := openStore(t)
	tb := r.newTable(t, tableOptions{})
	stdout, stderr, code := runBinary(t, "serve", "--store", r.store, "--listen", "127.0.0.1:0")
	if want := "tsimport: open store " + r.store + ": it is in use by another process"; code != 1 || stdout != "" ||
		!strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr\n%s, want one line that begins\n%s", code, stdout, stderr, want)
	}
	t.Run("which goes on serving", func(t *testing.T) { must(t, r.do(tb.put(tb.key("a", 1)))) })
}

func TestServeRefusesWhatItCannotServe(t *testing.T) {
	spec(t, "1.1.6")
	t.Parallel()
	s := startServe(t, "--quiet")
	foreign := t.TempDir()
	for name, v := range map[string]struct {
		args []string
		code int
		want string // in stderr
	}{
		"a directory that is no store": {[]string{"--store", filepath.Dir(binary)}, 1, "not a tsimport store"},
		"an address in use":            {[]string{"--store", filepath.Join(foreign, "a"), "--listen", strings.TrimPrefix(s.URL, "http://")}, 1, "address already in use"},
		"an address that is none":      {[]string{"--store", filepath.Join(foreign, "b"), "--listen", "nowhere:x"}, 1, "listen"},
		"an argument":                  {[]string{"--store", filepath.Join(foreign, "c"), "extra"}, 2, "extra"},
		"a way to sync nobody knows":   {[]string{"--store", filepath.Join(foreign, "d"), "--sync", "often"}, 2, "often"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := runBinary(t, append([]string{"serve"}, v.args...)...)
			if code != v.code || stdout != "" || !strings.Contains(stderr, v.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}
