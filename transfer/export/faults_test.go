package export

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tsimport/internal/jobdir"
	"tsimport/reader/archive"
	"tsimport/reader/tablescan"
	format "tsimport/transfer/archive"
)

// flaky is a store that fails each kind of act the nth time, before or after it has done what it was asked.
type flaky struct {
	jobdir.Store
	after bool
	nth   int
	mu    sync.Mutex
	asked map[string]int // by kind of act
}

var (
	errStore = errors.New("the store does not answer")
	digits   = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)
)

func (f *flaky) act(verb, name string, do func() error) error {
	kind := verb + " " + digits.ReplaceAllString(name, "N")
	f.mu.Lock()
	f.asked[kind]++
	nth := f.asked[kind]
	f.mu.Unlock()
	fails := nth == f.nth && !strings.Contains(name, "/lease.") // a lease that was not given back would be waited for
	if fails && !f.after {
		return errStore
	}
	err := do()
	if fails {
		return errors.Join(err, errStore)
	}
	return err
}

func (f *flaky) PutAbsent(ctx context.Context, name string, body []byte) error {
	return f.act("put", name, func() error { return f.Store.PutAbsent(ctx, name, body) })
}

func (f *flaky) Get(ctx context.Context, name string) (body []byte, err error) {
	err = f.act("get", name, func() (err error) { body, err = f.Store.Get(ctx, name); return err })
	return body, err
}

func (f *flaky) List(ctx context.Context, prefix string) (names []string, err error) {
	err = f.act("list", prefix, func() (err error) { names, err = f.Store.List(ctx, prefix); return err })
	return names, err
}

func (f *flaky) Delete(ctx context.Context, name string) error {
	return f.act("delete", name, func() error { return f.Store.Delete(ctx, name) })
}

// TestAnArchiveInAStoreThatFailsEachActOnceHasEveryCell repeats an export until it ends.
func TestAnArchiveInAStoreThatFailsEachActOnceHasEveryCell(t *testing.T) {
	for i := range 6 {
		after, nth := i%2 == 1, 1+i/2
		t.Run(fmt.Sprintf("after %v, %d", after, nth), func(t *testing.T) {
			w, _ := wideWorld(t, 2)
			want := rowsOf(t, tablescan.New(w.archive("").Scan))
			c := w.archive("")
			dir := filepath.Join(t.TempDir(), "a")
			c.Readers, c.PartBytes = 1, 4_000
			store, err := jobdir.Open(t.Context(), dir, jobdir.Options{})
			must(t, err)
			f := &flaky{Store: store, after: after, nth: nth, asked: map[string]int{}}
			c.Store = f
			ended := 0
			for _, err = ToArchive(t.Context(), c); err != nil && ended < 50; _, err = ToArchive(t.Context(), c) {
				ended++
				if occupied := new(format.OccupiedError); errors.As(err, &occupied) {
					break // the manifest was put, and what came after it failed
				}
				if !errors.Is(err, errStore) {
					t.Errorf("after %v: %v", f.asked, err)
				}
			}
			exported := err
			m, err := format.Read(dir)
			must(t, err)
			if got := rowsOf(t, archive.New(m)); !slices.Equal(got, want) {
				t.Errorf("after %d errors it has %d rows, want %d, or others", ended, len(got), len(want))
			}
			names, wrong := store.List(t.Context(), "")
			if left := slices.DeleteFunc(names, func(name string) bool {
				return !strings.Contains(name, "/entry-")
			}); wrong != nil || exported == nil && len(left) > 0 {
				t.Errorf("an export that says nothing leaves %q, %v", left, wrong)
			}
			if len(f.asked) < 10 || ended < 4-nth {
				t.Errorf("%v failed, %d of them ended the export", f.asked, ended)
			}
		})
	}
}
