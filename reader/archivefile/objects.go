package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/reader/input"
)

// Objects used while an archive is written. Inputs never include them. The lease remains afterwards.
const (
	besideName  = ".tsimport-archive"
	entryPrefix = besideName + "/entry-"
)

// objects is a place in an object store. put never overwrites an object: it first deletes one left by a killed process.
type objects struct {
	ctx     context.Context
	store   jobdir.Store
	onWait  func(owner string)
	held    *jobdir.Lease
	entries int // number of journal entries
}

func (o *objects) String() string          { return strings.TrimSuffix(o.store.String(), "/") }
func (o *objects) Path(name string) string { return strings.TrimSuffix(o.String()+"/"+name, "/") }

func (o *objects) lock() (err error) {
	if err := jobdir.Probe(o.ctx, jobdir.Below(o.store, besideName)); err != nil {
		return err
	}
	o.held, err = jobdir.Acquire(o.ctx, jobdir.Below(o.store, besideName), jobdir.LeaseOptions{Wait: 2 * jobdir.Term,
		OnWait: o.onWait})
	if held := new(jobdir.HeldError); errors.As(err, &held) {
		return &OccupiedError{o.String(), "is being written by another process (" + held.Owner + ")"}
	}
	return err
}

// unlock ignores errors, because a lease that is not released expires.
func (o *objects) unlock() error {
	_ = o.held.Release()
	return nil
}

func (o *objects) sizes() (map[string]int64, error) {
	names, err := o.store.List(o.ctx, "")
	sizes := make(map[string]int64)
	for _, name := range names {
		switch {
		case name == "", strings.HasSuffix(name, "/"): // some tools create objects that represent folders
		case strings.HasPrefix(name, entryPrefix):
			sizes[journalName] = -1
		case !strings.HasPrefix(name, besideName+"/"):
			sizes[name] = -1
		}
	}
	return sizes, err
}

// Size and Open read the whole object, so use them only for small ones.
func (o *objects) Size(name string) (int64, error) {
	body, err := o.store.Get(o.ctx, name)
	return int64(len(body)), err
}

func (o *objects) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	body, err := o.store.Get(ctx, name)
	return io.NopCloser(bytes.NewReader(body)), err
}

func (o *objects) remove(name string) error {
	if name == journalName {
		return o.clean()
	}
	return o.store.Delete(o.ctx, name)
}

func (o *objects) put(name string, body []byte) (err error) {
	for range 3 {
		if err := o.held.Check(); err != nil {
			return err
		}
		if err = o.store.PutAbsent(o.ctx, name, body); !errors.Is(err, jobdir.ErrExists) {
			return err
		}
		if err := o.store.Delete(o.ctx, name); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", o.Path(name), err)
}

// FilesIn returns an archive's files in an object store. Each file is held in memory while it is read or written.
func FilesIn(ctx context.Context, s jobdir.Store) Files { return &objects{ctx: ctx, store: s} }

// replace may overwrite an object, because it always stores the same content under a given name.
func (o *objects) replace(name string, body []byte) error {
	if err := o.held.Check(); err != nil {
		return err
	}
	return o.store.Put(o.ctx, name, body)
}

func entryName(n int) string { return fmt.Sprintf("%s%08d", entryPrefix, n) }

func (o *objects) beginJournal(line []byte) error { return o.appendJournal(line) }

func (o *objects) appendJournal(line []byte) error {
	if err := o.put(entryName(o.entries), line); err != nil {
		return err
	}
	o.entries++
	return nil
}

// each calls do for every name, up to 16 concurrently.
func (o *objects) each(names []string, do func(ctx context.Context, i int, name string) error) error {
	group, ctx := errgroup.WithContext(o.ctx)
	group.SetLimit(16)
	for i, name := range names {
		group.Go(func() error { return do(ctx, i, name) })
	}
	return group.Wait()
}

func (o *objects) continueJournal() ([]byte, error) {
	names, err := o.store.List(o.ctx, entryPrefix)
	if err == nil && len(names) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	lines := make([][]byte, len(names))
	err = o.each(names, func(ctx context.Context, i int, name string) (err error) {
		if name != entryName(i) {
			return fmt.Errorf("%s is missing", o.Path(entryName(i)))
		}
		lines[i], err = o.store.Get(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	o.entries = len(lines)
	var whole []byte
	for _, line := range lines {
		whole = append(whole, line...)
	}
	return whole, nil
}

func (o *objects) closeJournal() error { return nil }

// clean deletes the first entry last, because there is no journal without it.
func (o *objects) clean() error {
	names, err := o.store.List(o.ctx, entryPrefix)
	if err == nil {
		err = o.each(names, func(ctx context.Context, _ int, name string) error {
			if name == entryName(0) {
				return nil
			}
			return o.store.Delete(ctx, name)
		})
	}
	if err != nil {
		return err
	}
	return o.store.Delete(o.ctx, entryName(0))
}

// remote provides an archive's files in an object store, each in the version found by Find.
type remote struct {
	place string // address, without a trailing /
	items map[string]*input.Item
}

func (r *remote) Path(name string) string { return strings.TrimSuffix(r.place+"/"+name, "/") }

func (r *remote) Size(name string) (int64, error) {
	item := r.items[name]
	if item == nil {
		return 0, fs.ErrNotExist
	}
	return item.Size, nil
}

func (r *remote) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	item := r.items[name]
	if item == nil {
		return nil, fs.ErrNotExist
	}
	return item.Open(ctx)
}

// Find returns an archive's files, given the address of its folder or manifest, or nil if there are none. An unfinished
// export that has no parts of an archive yet, or is a lake, is an error.
func Find(ctx context.Context, address string, o input.Options) (Files, error) {
	r := &remote{place: strings.TrimRight(strings.TrimSuffix(address, "/"+ManifestName), "/"),
		items: map[string]*input.Item{}}
	o.PathColumns, o.Extensions = false, nil
	find := func(name string, take func(item *input.Item)) error {
		set, err := input.Expand(ctx, []string{r.place + "/" + name}, o)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for i := 0; err == nil && i < len(set.Items); i++ {
			take(&set.Items[i])
		}
		return err
	}
	for _, name := range []string{ManifestName, "archive-*"} {
		err := find(name, func(item *input.Item) {
			if name := path.Base(item.Name); item.Name == r.Path(name) && (name == ManifestName || IsPart(name)) {
				r.items[name] = item
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if len(r.items) == 0 {
		begun, whole := false, false
		err := find(entryName(0), func(*input.Item) { begun = true })
		if begun && err == nil {
			err = find(LakeManifestName, func(*input.Item) { whole = true })
		}
		if begun && !whole && err == nil {
			err = &DamagedError{r.place, "the export to it is not finished; give its command again"}
		}
		return nil, err
	}
	if len(r.items) == 1 && r.items[ManifestName] != nil && !HasFormat(ctx, r) {
		return nil, nil
	}
	return r, nil
}
