package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tsimport/internal/jobdir"
	"tsimport/reader/archive"
	"tsimport/reader/tablescan"
	format "tsimport/transfer/archive"
)

// flaky is a store that fails each kind of act once, before or after it has done what it was asked.
type flaky struct {
	jobdir.Store
	after  bool
	failed map[string]bool // kinds of acts
}

var (
	errStore = errors.New("the store does not answer")
	digits   = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)
)

func (f *flaky) act(verb, name string, do func() error) error {
	kind := verb + " " + digits.ReplaceAllString(name, "N")
	fails := !f.failed[kind] && !strings.Contains(name, "/lease.") // a lease that was not given back would be waited for
	f.failed[kind] = true
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
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			w, _ := wideWorld(t, 2)
			want := rowsOf(t, tablescan.New(w.archive("").Scan))
			c := w.archive("")
			dir := filepath.Join(t.TempDir(), "a")
			c.Readers, c.PartBytes = 1, 20_000
			store, err := jobdir.Open(t.Context(), dir, jobdir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := &flaky{store, after, map[string]bool{}}
			c.Store = f
			ended := 0
			for _, err = ToArchive(t.Context(), c); err != nil && ended < 50; _, err = ToArchive(t.Context(), c) {
				ended++
				if occupied := new(format.OccupiedError); !errors.Is(err, errStore) && !(after && errors.As(err, &occupied)) {
					t.Errorf("after %q: %v", slices.Sorted(maps.Keys(f.failed)), err)
				}
				if occupied := new(format.OccupiedError); errors.As(err, &occupied) {
					break // the manifest was put, though the store has not said so
				}
			}
			m, err := format.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(t, archive.New(m)); !slices.Equal(got, want) {
				t.Errorf("after %d errors it has %d rows, want %d, or others", ended, len(got), len(want))
			}
			if len(f.failed) < 10 || ended < 4 {
				t.Errorf("%q failed, %d of them ended the export", slices.Sorted(maps.Keys(f.failed)), ended)
			}
		})
	}
}
