package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"example.com/tsimport/internal/objectstore"
)

// objects adds the objects of an address such as oss://bucket/key. It uses the first of these that exists: the object
// with this key; the objects in the folder key/; objects that match key as a glob; objects whose keys begin with key.
// The folder precedes the prefix so that oss://b/data omits data-old/; oss://b/data/part- is still a prefix.
func (e *expander) objects(ctx context.Context, scheme, address string) error {
	bucket, key, _ := strings.Cut(address, "/")
	name := objectName(scheme, bucket, key)
	if why := objectstore.CheckBucket(scheme, bucket); why != "" {
		return fmt.Errorf("open input %s: the part before the first / %s; write %s://bucket/key; keys come from the "+
			"environment", Redact(name), why, scheme)
	}
	service, err := e.service(ctx, scheme)
	if err != nil {
		return fmt.Errorf("open input %s: %w", name, err)
	}
	l := lister{expander: e, service: service, bucket: bucket}
	if key != "" && !strings.HasSuffix(key, "/") {
		if done, err := l.exact(ctx, key); done || err != nil {
			return wrapOpen(name, err)
		}
	}
	l.passed.met = false
	for _, try := range l.meanings(key) {
		if found, err := l.below(ctx, try); found || err != nil {
			return wrapOpen(name, err)
		}
		if l.passed.met {
			break // this meaning applies, but all of its objects are leftovers
		}
	}
	return &missing{fmt.Sprintf("open input %s: no object has this key, and there are none below it that are not "+
		"hidden%s%s; check the key", name, e.extensions(), e.alsoSkipped("; skipped ")), true}
}

func wrapOpen(name string, err error) error {
	if err != nil {
		err = fmt.Errorf("open input %s: %w", name, err)
	}
	return err
}

// matchesFolder reports whether the listing's glob matches a folder that contains key. Without a glob it returns true.
func (w listing) matchesFolder(key string) bool {
	if w.pattern == "" {
		return true
	}
	for i, c := range key {
		if c == '/' && doublestar.MatchUnvalidated(w.pattern, key[:i]) {
			return true
		}
	}
	return false
}

type lister struct {
	*expander
	service objectstore.Service
	bucket  string
}

type listing struct {
	prefix  string
	pattern string // a glob; "" for all keys with the prefix
}

// meanings returns a key's meanings other than an object; the first that has objects applies.
func (l *lister) meanings(key string) []listing {
	if key == "" || strings.HasSuffix(key, "/") {
		return []listing{{prefix: key}}
	}
	all := []listing{{prefix: key + "/"}}
	if i := strings.IndexAny(key, metaBytes); i >= 0 && doublestar.ValidatePattern(key) {
		all = append(all, listing{prefix: key[:i], pattern: key})
	}
	return append(all, listing{prefix: key})
}

// exact adds the object key if it exists. It uses a listing, or HEAD if listing is forbidden.
func (l *lister) exact(ctx context.Context, key string) (done bool, err error) {
	page, err := l.page(ctx, listing{prefix: key}, "", 1)
	if errors.Is(err, fs.ErrPermission) {
		o, headErr := l.head(ctx, key)
		if headErr != nil {
			return false, err // folders can be found only by listing
		}
		return true, l.exactly(ctx, o)
	}
	if err != nil || len(page.Objects) == 0 || page.Objects[0].Key != key {
		return false, err // the key itself would be first among keys with this prefix
	}
	o, err := l.followed(ctx, page.Objects[0])
	if err != nil {
		return false, err
	}
	return true, l.exactly(ctx, o)
}

func (l *lister) exactly(ctx context.Context, o objectstore.Object) error {
	if tableData(o.Key) {
		if err := l.checkAbove(ctx, l.name(o.Key), path.Dir("/"+o.Key)); err != nil {
			return err
		}
	}
	return l.object(o, path.Dir("/"+o.Key), path.Base(o.Key))
}

// below adds the objects of a listing and reports whether there are any. Keys that end in / are folders.
func (l *lister) below(ctx context.Context, what listing) (found bool, err error) {
	base := what.prefix[:strings.LastIndex(what.prefix, "/")+1]
	before, repeats := len(l.set.Items), len(l.repeats)
	var tables []*tableAt // tables whose logs are in the listing
	list := func(token string) (objectstore.Page, error) { return l.page(ctx, what, token, 0) }
	err = objectstore.EachPage(list, func(objects []objectstore.Object) error {
		for _, o := range objects {
			if t := tableOfKey(o.Key); t != nil && (len(tables) == 0 || *tables[len(tables)-1] != *t) {
				tables = append(tables, t)
			}
			if err := l.take(ctx, what, base, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for i := before; i < len(l.set.Items); i++ {
		l.set.Items[i].Found = true
	}
	found = len(l.set.Items) > before || len(l.repeats) > repeats
	return found, l.checkTables(ctx, before, base, tables)
}

// take adds a listed object if it is wanted.
func (l *lister) take(ctx context.Context, what listing, base string, o objectstore.Object) error {
	key := o.Key
	rest := strings.TrimPrefix(key, base)
	if strings.HasSuffix(key, "/") && o.Size == 0 {
		return nil
	}
	if !spellsMark(what.pattern) && hiddenBelow(rest, strings.TrimPrefix(what.prefix, base)) {
		return nil
	}
	matched := what.pattern != "" && doublestar.MatchUnvalidated(what.pattern, key)
	if !matched && (!what.matchesFolder(key) || !l.wanted(key)) {
		return nil
	}
	if what.pattern == "" && l.listsExport(l.name(key)) || l.isLeftover(l.name(key), what.pattern) {
		return nil
	}
	if parts := strings.Split(rest, "/"); slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		l.passed.met = true
		if name := l.name(key); !slices.Contains(l.passed.dotted, name) {
			l.passed.dotted = append(l.passed.dotted, name)
		}
		return nil
	}
	o, err := l.followed(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return l.object(o, base, rest)
}

// hiddenBelow reports whether a name in rest is hidden. The first name may be hidden if spelled is not empty.
func hiddenBelow(rest, spelled string) bool {
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		if (i > 0 || spelled == "") && hidden(part, i < len(parts)-1) {
			return true
		}
	}
	return false
}

// followed returns the object itself or, if it is a symbolic link, the target's metadata.
func (l *lister) followed(ctx context.Context, o objectstore.Object) (objectstore.Object, error) {
	if o.Link {
		return l.head(ctx, o.Key)
	}
	return o, nil
}

// page returns a page of a listing, with at most maxKeys objects; 0 means the service's limit.
func (l *lister) page(ctx context.Context, what listing, token string, maxKeys int) (page objectstore.Page, err error) {
	err = l.options.Retry.attempt(ctx, func(ctx context.Context) error {
		page, err = l.service.List(ctx, l.bucket, what.prefix, token, maxKeys)
		return plainObject(err)
	})
	return page, err
}
