package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"example.com/tsimport/reader/input"
)

// remote are the files of an archive in a store of objects, each as it was when it was found.
type remote struct {
	place string // its address, without a / at the end
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

// Find returns the files of the archive at an address, such as oss://bucket/kept or that of its manifest, and nil if there is none, neither a
// whole one nor a part of one.
func Find(ctx context.Context, address string, o input.Options) (Files, error) {
	r := &remote{place: strings.TrimRight(strings.TrimSuffix(address, "/"+ManifestName), "/"), items: map[string]*input.Item{}}
	o.PathColumns, o.Extensions = false, nil
	for _, name := range []string{ManifestName, "archive-*"} {
		set, err := input.Expand(ctx, []string{r.place + "/" + name}, o)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		for i := range set.Items {
			item := &set.Items[i]
			if name := path.Base(item.Name); item.Name == r.Path(name) && (name == ManifestName || IsPart(name)) {
				r.items[name] = item
			}
		}
	}
	if len(r.items) == 0 || len(r.items) == 1 && r.items[ManifestName] != nil && !HasFormat(ctx, r) {
		return nil, nil
	}
	return r, nil
}
