package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"
	"github.com/bmatcuk/doublestar/v4"
)

// bucketName is OSS's rule for names of buckets.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)

// objects adds what an address oss://bucket/key means. In this order: the object of this very key; the objects in the
// folder key/; those that key matches as a glob; those whose keys begin with key. The folder goes before the prefix so
// that oss://b/data does not take data-old/ along; a prefix is still what oss://b/data/part- means.
func (e *expander) objects(ctx context.Context, arg string) error {
	bucket, key, _ := strings.Cut(arg[len("oss://"):], "/")
	name := objectName(bucket, key)
	if !bucketName.MatchString(bucket) {
		return fmt.Errorf("open input %s: the part before the first / is not a bucket name; write oss://bucket/key; keys come from the environment", Redact(name))
	}
	client, err := e.ossClient()
	if err != nil {
		return fmt.Errorf("open input %s: %w", name, err)
	}
	l := lister{expander: e, client: client, bucket: bucket}
	if key != "" && !strings.HasSuffix(key, "/") {
		if done, err := l.exact(ctx, key); done || err != nil {
			return wrapOpen(name, err)
		}
	}
	for _, try := range l.meanings(key) {
		if found, err := l.below(ctx, try); found || err != nil {
			return wrapOpen(name, err)
		}
	}
	return &missing{fmt.Sprintf("open input %s: no object has this key or a key below it that is not hidden%s; check the address", name, e.besides())}
}

func wrapOpen(name string, err error) error {
	if err != nil {
		err = fmt.Errorf("open input %s: %w", name, err)
	}
	return err
}

// matches reports whether the listing's glob matches a key itself.
func (w listing) matches(key string) bool {
	return w.pattern != "" && doublestar.MatchUnvalidated(w.pattern, key)
}

// matchesFolder reports whether the key is below a folder that the listing means.
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

// lister lists objects of one bucket.
type lister struct {
	*expander
	client *oss.Client
	bucket string
}

// listing is a set of keys.
type listing struct {
	prefix  string
	pattern string // "" takes all below prefix
}

// meanings returns what else than an object a key may mean, the first that there is counts.
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

// exact adds the object key if there is one. It asks by listing, which tells a missing object from a folder in one
// request, and where listing is forbidden by HEAD.
func (l *lister) exact(ctx context.Context, key string) (done bool, err error) {
	page, err := l.page(ctx, listing{prefix: key}, "", 1)
	if errors.Is(err, fs.ErrPermission) {
		v, headErr := l.headObject(ctx, l.client, l.bucket, key)
		if headErr != nil {
			return false, err // what listing says is what a folder needs too
		}
		return true, l.exactly(ctx, key, v)
	}
	if err != nil || len(page.Contents) == 0 || oss.ToString(page.Contents[0].Key) != key {
		return false, err // of the keys with a prefix, the prefix sorts first
	}
	v, err := l.version(ctx, page.Contents[0])
	if err != nil {
		return false, err
	}
	return true, l.exactly(ctx, key, v)
}

func (l *lister) exactly(ctx context.Context, key string, v version) error {
	if tableData(key) {
		if err := l.checkAbove(ctx, objectName(l.bucket, key), path.Dir("/"+key)); err != nil {
			return err
		}
	}
	return l.exactObject(l.client, l.bucket, key, v)
}

// below adds the objects of a listing and reports whether there was one. Those whose keys end in / stand for folders.
func (l *lister) below(ctx context.Context, what listing) (found bool, err error) {
	base := what.prefix[:strings.LastIndex(what.prefix, "/")+1]
	before, repeats := len(l.set.Items), len(l.repeats)
	var tables []*tableAt // whose logs are listed
	for token, more := "", true; more; {
		page, err := l.page(ctx, what, token, 0)
		if err != nil {
			return false, err
		}
		for _, o := range page.Contents {
			if t := tableOfKey(oss.ToString(o.Key)); t != nil && (len(tables) == 0 || *tables[len(tables)-1] != *t) {
				tables = append(tables, t)
			}
			if err := l.take(ctx, what, base, o); err != nil {
				return false, err
			}
		}
		last := token
		token, more = oss.ToString(page.NextContinuationToken), page.IsTruncated
		if more && (token == "" || token == last) {
			return false, errors.New("the service says that its list continues, but not from where; try again")
		}
	}
	for i := before; i < len(l.set.Items); i++ {
		l.set.Items[i].Found = true
	}
	found = len(l.set.Items) > before || len(l.repeats) > repeats
	return found, l.checkTables(ctx, before, base, tables)
}

// take adds one object of a listing if it is wanted.
func (l *lister) take(ctx context.Context, what listing, base string, o oss.ObjectProperties) error {
	key := oss.ToString(o.Key)
	rest := strings.TrimPrefix(key, base)
	if strings.HasSuffix(key, "/") && o.Size == 0 {
		return nil
	}
	if !spellsMark(what.pattern) && hiddenBelow(rest, strings.TrimPrefix(what.prefix, base)) {
		return nil
	}
	if matched := what.matches(key); !matched && (!what.matchesFolder(key) || !l.wanted(key)) {
		return nil
	}
	v, err := l.version(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return l.object(l.client, l.bucket, key, v, base, rest)
}

// hiddenBelow reports whether a name in rest is hidden. What the argument spelled of the first is not held against it.
func hiddenBelow(rest, spelled string) bool {
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		if (i > 0 || spelled == "") && hidden(part, i < len(parts)-1) {
			return true
		}
	}
	return false
}

// version returns what a listing says of an object. Of a link it tells the link's, not the object's it leads to.
func (l *lister) version(ctx context.Context, o oss.ObjectProperties) (version, error) {
	if oss.ToString(o.Type) == "Symlink" {
		return l.headObject(ctx, l.client, l.bucket, oss.ToString(o.Key))
	}
	return version{size: o.Size, etag: oss.ToString(o.ETag)}, nil
}

// page asks for one page of a listing, of at most maxKeys, 0 for the service's 1000 at most.
func (l *lister) page(ctx context.Context, what listing, token string, maxKeys int32) (result *oss.ListObjectsV2Result, err error) {
	if maxKeys == 0 {
		maxKeys = 1000 // unsaid, it is 100
	}
	err = l.Retry.attempt(ctx, func(ctx context.Context) error {
		result, err = l.client.ListObjectsV2(ctx, &oss.ListObjectsV2Request{
			Bucket: oss.Ptr(l.bucket), Prefix: ptrOrNil(what.prefix), ContinuationToken: ptrOrNil(token), MaxKeys: maxKeys,
		})
		if err != nil {
			return plainOSS(err)
		}
		return nil
	})
	return result, err
}
