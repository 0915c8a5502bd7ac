package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/objectstore"
)

// Stdin is the argument that stands for standard input.
const Stdin = "-"

// ErrChanged is wrapped by errors about an input that has changed since it was found.
var ErrChanged = errors.New("changed since it was found")

// Item is an input: a file, an object, an address or standard input. Copies of an item refer to the same input.
type Item struct {
	Name     string    // for users: the path, the address without secrets, oss://bucket/key, s3://bucket/key, or "-"
	Size     int64     // in bytes; -1 if unknown
	Version  string    // ETag or modification time, which changes with the content; "" if unknown
	Modified time.Time // zero if unknown
	Columns  []Column  // from partition folders, outermost first; nil unless Options.PathColumns is set
	Found    bool      // whether a folder, prefix or glob found it, and no argument named it

	src     source
	observe func(off int64, p []byte) // called with all bytes read; may be nil
}

// Others returns the items whose names are not in names.
func Others(items []Item, names map[string]bool) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return names[i.Name] })
}

// Observed returns an item like i that also passes all bytes read to by, concurrently. by must not keep or change p.
func (i *Item) Observed(by func(off int64, p []byte)) Item {
	o := *i
	o.observe = by
	return o
}

// ReaderAtCloser reads any part of an item. It is safe for concurrent use. Close makes reads in progress fail.
type ReaderAtCloser interface {
	io.ReaderAt
	io.Closer
}

type source interface {
	seekable() bool
	openAt(ctx context.Context) (ReaderAtCloser, error) // called only if seekable returns true
	open(ctx context.Context) (io.ReadCloser, error)
}

// Seekable reports whether OpenAt can be used. If so, Size is known.
func (i *Item) Seekable() bool { return i.src.seekable() }

// Local reports whether the item is a file on this machine, so that reading it twice is cheap.
func (i *Item) Local() bool {
	_, ok := i.src.(*localFile)
	return ok
}

// OpenAt opens an item for reading at any offset. ctx limits all reads. Reads of remote items are retried if the server
// or the connection fails. Each read is a request, so read large pieces. Bytes beyond Size are never returned.
func (i *Item) OpenAt(ctx context.Context) (ReaderAtCloser, error) {
	if !i.Seekable() {
		return nil, fmt.Errorf("open %s: it has no ranges; read it from the start: %w", i.Name, errors.ErrUnsupported)
	}
	at, err := i.src.openAt(ctx)
	if err != nil || i.observe == nil {
		return at, err
	}
	return &observedAt{at, i.observe}, nil
}

type observedAt struct {
	ReaderAtCloser
	observe func(off int64, p []byte)
}

func (o *observedAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.ReaderAtCloser.ReadAt(p, off)
	o.observe(off, p[:n])
	return n, err
}

type observedStream struct {
	io.ReadCloser
	off     int64
	observe func(off int64, p []byte)
}

func (o *observedStream) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.observe(o.off, p[:n])
	o.off += int64(n)
	return n, err
}

// Check returns ErrChanged if the item has changed since it was found. Call it at the end; remote reads always check.
func (i *Item) Check() error {
	if c, ok := i.src.(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}

// Open opens an item for reading from its start. ctx limits all reads. If the size is known, io.EOF follows exactly
// Size bytes. Standard input can be opened once. Opening a named pipe waits for a writer.
func (i *Item) Open(ctx context.Context) (io.ReadCloser, error) {
	r, err := i.src.open(ctx)
	if err != nil || i.observe == nil {
		return r, err
	}
	return &observedStream{ReadCloser: r, observe: i.observe}, nil
}

// Options controls how arguments are interpreted. The zero value is ready to use.
type Options struct {
	Stdin       io.Reader    // standard input; nil means os.Stdin
	HTTPClient  *http.Client // nil means a client that uses the environment's proxy; its Transport also serves oss://
	OSS         objectstore.OSS
	S3          objectstore.S3
	PathColumns bool     // take columns from k=v folders
	Extensions  []string // extensions of files to take from folders and prefixes, such as ".csv"; nil means all
	Retry       Retry
	// NotData says what a folder or file is if it is not data, such as "run folder"; otherwise it returns "". It is called
	// for paths found by a walk or a glob, not for arguments. If it is nil, everything is data.
	NotData func(name string, folder bool) string
	// Unread returns an error that explains how to read an address that names no files, or nil. Unread may be nil.
	Unread func(address string) error
}

// Set is the result of Expand.
type Set struct {
	Items    []Item   // in the order of the arguments; those of one argument by name
	Warnings []string // one sentence each, for users
	Unread   []string // warnings about inputs left out that may hold data, or may be truncated

	Exported time.Time // time of the earliest DynamoDB export; zero if there is none
}

// AllEmpty returns the error for one or more inputs, none of which has a record.
func AllEmpty(items []Item) error {
	if len(items) == 1 {
		return fmt.Errorf("%s is empty: it has no header and no records", items[0].Name)
	}
	return fmt.Errorf("all %d inputs are empty; %s, like the others, has no header and no records", len(items),
		items[0].Name)
}

// Expand finds the inputs that arguments name, in order, each once. If one matches nothing, it returns fs.ErrNotExist.
//
// An existing file or folder is used even if its name looks like a glob; @list is always a manifest and - always
// standard input (for files with such names write ./@list and ./-). A folder stands for the files below it, without
// hidden ones, whose names begin with . or _, unless an argument or glob spells out that character, and without links
// to folders. Paths that NotData rejects and leftovers such as a.csv~ and b.csv.tmp are omitted, with one warning.
func Expand(ctx context.Context, args []string, o Options) (*Set, error) {
	e := newExpander(o)
	if len(args) == 0 {
		return nil, errors.New("find inputs: none given; name a file, folder, glob, address or - for standard input")
	}
	var unmatched *missing
	for _, arg := range args {
		err := e.argument(ctx, arg, "")
		if m := new(missing); errors.As(err, &m) && m.matches {
			unmatched = cmp.Or(unmatched, m)
			continue // the other arguments decide whether the error is ErrNothing
		}
		if err != nil {
			return nil, RedactError(err) // a mistyped address looks like a local name
		}
	}
	if unmatched != nil {
		unmatched.matches = len(e.set.Items) == 0
		return nil, RedactError(unmatched)
	}
	if len(e.skipped) > 0 {
		e.warn("skipped %s; name one to read it", someOf(e.skipped))
	}
	const left = "skipped unfinished or replaced files, by their names (%d): %s; to read one, name it or its ending"
	if len(e.passed.dotted) > 0 {
		e.unread("skipped objects with a folder called . or .. in their keys (%d), which other programs take for other "+
			"objects: %s; name one to read it", len(e.passed.dotted), someOf(e.passed.dotted))
	}
	if e.passed.unfinished {
		e.unread(left, len(e.passed.left), someOf(e.passed.left))
	} else if len(e.passed.left) > 0 {
		e.warn(left, len(e.passed.left), someOf(e.passed.left))
	}
	e.warnOfCopies()
	return &e.set, nil
}

// ErrNothing is wrapped by Expand's error if all arguments are globs, folders or prefixes that match nothing.
var ErrNothing = errors.New("there is no input")

type expander struct {
	options  Options
	set      Set
	number   int                            // number of the current argument
	alike    map[string]int                 // number of addresses that are shown by the same name
	seen     map[string]int                 // by identity: number of the argument that named the item
	repeats  []string                       // names in the current argument that an earlier argument named
	services map[string]objectstore.Service // by scheme, created on first use
	listedBy *remote                        // server whose list is being read, or nil
	tables   map[string]*tableAt            // by folder: the table that contains it, or nil
	asked    map[string]string              // results of NotData, by path
	skipped  []string                       // paths omitted because of NotData
	passed   passed                         // files omitted because of their names
	plain    bool                           // read a DynamoDB export's list like any other file
}

// passed holds files omitted because of their names.
type passed struct {
	left       []string // names of leftovers
	unfinished bool     // whether left includes an unfinished file
	dotted     []string // objects that have a folder . or .. in their keys
	met        bool     // whether a file was omitted since met was reset
}

func newExpander(o Options) *expander {
	o.HTTPClient, o.Stdin = cmp.Or(o.HTTPClient, defaultHTTPClient), cmp.Or[io.Reader](o.Stdin, os.Stdin)
	o.Retry = o.Retry.withDefaults()
	return &expander{options: o, seen: map[string]int{}, alike: map[string]int{}, asked: map[string]string{},
		services: map[string]objectstore.Service{}, tables: map[string]*tableAt{}}
}

// argument adds the inputs of an argument. It looks up relative names in the working directory, then in dir.
func (e *expander) argument(ctx context.Context, arg, dir string) (err error) {
	e.number++
	e.repeats = nil
	arg = Path(arg)
	shown := Redact(arg)
	if !e.plain {
		if is, err := e.exported(ctx, arg); is || err != nil {
			return err
		}
	}
	switch scheme := SchemeOf(arg); {
	case arg == Stdin:
		e.add(Item{Name: Stdin, Size: -1, src: &standardInput{reader: e.options.Stdin}}, Stdin)
	case strings.HasPrefix(arg, "@"):
		return e.manifest(ctx, arg[1:])
	case scheme == "":
		err = e.local(ctx, arg, dir)
	case scheme == "http" || scheme == "https":
		shown, err = e.address(ctx, arg)
	case scheme == "oss" || scheme == "s3":
		err = e.objects(ctx, scheme, arg[len(scheme)+len("://"):])
	default: // Unread explains other schemes
		if e.options.Unread != nil {
			err = e.options.Unread(arg)
		}
		if err != nil {
			break
		}
		err = fmt.Errorf("open input %s: it names no files; want a path, http://, https://, oss:// or s3://", Redact(arg))
	}
	if err != nil {
		return err
	}
	e.warnOfRepeats(shown)
	return nil
}

// SchemeOf returns an address's scheme in lower case, or "" for a path.
func SchemeOf(arg string) string {
	scheme, _, found := strings.Cut(arg, "://")
	if !found || strings.ContainsAny(scheme, "/*?[{") {
		return ""
	}
	return strings.ToLower(scheme)
}

// Path returns the path in a literal file:// address on this machine. It returns any other argument unchanged.
func Path(arg string) string {
	if SchemeOf(arg) != "file" {
		return arg
	}
	path := strings.TrimPrefix(arg[len("file://"):], "localhost")
	if !filepath.IsAbs(path) || strings.ContainsAny(path, "%?#") {
		return arg
	}
	return path
}

// add adds an item unless it was added before. A repeat within one argument, as of a folder and its file, is ignored.
func (e *expander) add(i Item, identity string) {
	if number, ok := e.seen[identity]; ok {
		if number != e.number {
			e.repeats = append(e.repeats, i.Name)
		}
		return
	}
	e.seen[identity] = e.number
	if r, ok := i.src.(*remote); ok {
		// Addresses may differ only in hidden parts. Their numbers are the same in every run.
		e.alike[i.Name]++
		if n := e.alike[i.Name]; n > 1 {
			i.Name = fmt.Sprintf("%s#%d", i.Name, n)
			r.name = i.Name
		}
	}
	e.set.Items = append(e.set.Items, i)
}

func (e *expander) warnOfRepeats(arg string) {
	switch len(e.repeats) {
	case 0:
	case 1:
		e.warn("%s is named twice; it is read once", e.repeats[0])
	default:
		e.warn("%s: %d of its inputs are named twice, the first is %s; each is read once", arg, len(e.repeats), e.repeats[0])
	}
}

// warn adds a warning unless it was added before: a glob may match the same folder twice.
func (e *expander) warn(format string, a ...any) {
	if w := fmt.Sprintf(format, a...); !slices.Contains(e.set.Warnings, w) {
		e.set.Warnings = append(e.set.Warnings, w)
	}
}

// unread adds a warning that data may be missing.
func (e *expander) unread(format string, a ...any) {
	e.warn(format, a...)
	if w := fmt.Sprintf(format, a...); !slices.Contains(e.set.Unread, w) {
		e.set.Unread = append(e.set.Unread, w)
	}
}

// wanted reports whether a file found in a folder has one of the Extensions.
func (e *expander) wanted(name string) bool {
	return len(e.options.Extensions) == 0 || slices.ContainsFunc(e.options.Extensions,
		func(x string) bool { return strings.HasSuffix(strings.ToLower(name), strings.ToLower(x)) })
}

// isData reports whether NotData accepts a path that is not an argument. If not, it records the path as skipped.
func (e *expander) isData(name string, folder bool) bool {
	if e.options.NotData == nil {
		return true
	}
	what, known := e.asked[name]
	if !known {
		what = e.options.NotData(name, folder)
		e.asked[name] = what
		if what != "" {
			e.skipped = append(e.skipped, what+" "+name)
		}
	}
	return what == ""
}

// shownSkipped is the number of skipped files that a warning names.
const shownSkipped = 5

func someOf(names []string) string {
	shown := strings.Join(names[:min(len(names), shownSkipped)], ", ")
	if n := len(names) - shownSkipped; n > 0 {
		shown += fmt.Sprintf(" and %d more", n)
	}
	return shown
}

// hidden reports whether a name marks something other than data, by the convention of Hadoop and shells: .part.crc,
// _SUCCESS, _temporary. The name of a partition folder may begin with _. In keys, the names . and .. have no meaning.
func hidden(name string, folder bool) bool {
	if name == "." || name == ".." {
		return false
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !(folder && strings.Contains(name, "="))
}
