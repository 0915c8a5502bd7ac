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

// Stdin is the argument for standard input.
const Stdin = "-"

// ErrChanged is wrapped by errors about an input that has changed since it was found.
var ErrChanged = errors.New("changed since it was found")

// Item is one input: a file, an object, an address or standard input. Copies of an item refer to the same input.
type Item struct {
	Name     string    // for users: the path, the address without its secrets, oss://bucket/key, s3://bucket/key, or "-"
	Size     int64     // in bytes; -1 if unknown
	Version  string    // changes with the content: ETag or modification time; "" if unknown
	Modified time.Time // zero if unknown
	Columns  []Column  // from partition folders, outermost first; nil without Options.PathColumns
	Found    bool      // found by a folder, prefix or glob rather than named

	src     source
	observe func(off int64, p []byte) // may be nil
}

// Others returns the items whose names are not in names.
func Others(items []Item, names map[string]bool) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return names[i.Name] })
}

// Observed returns the item with an observer, called concurrently with all bytes read. It must not keep or change p.
func (i *Item) Observed(by func(off int64, p []byte)) Item {
	o := *i
	o.observe = by
	return o
}

// ReaderAtCloser reads any part of an item. ReadAt may be called concurrently; it fails if Close is called meanwhile.
type ReaderAtCloser interface {
	io.ReaderAt
	io.Closer
}

type source interface {
	seekable() bool
	openAt(ctx context.Context) (ReaderAtCloser, error) // called only if seekable
	open(ctx context.Context) (io.ReadCloser, error)
}

// Seekable reports whether OpenAt works; Size is then known.
func (i *Item) Seekable() bool { return i.src.seekable() }

// Local reports whether the item is a file on this machine, which is cheap to read twice.
func (i *Item) Local() bool {
	_, ok := i.src.(*localFile)
	return ok
}

// OpenAt opens an item for reading at any offset. The context bounds every read. Reads of remote items are repeated if
// the server or the connection fails. Each read is a request, so read large pieces. Bytes beyond Size do not exist.
func (i *Item) OpenAt(ctx context.Context) (ReaderAtCloser, error) {
	if !i.Seekable() {
		return nil, fmt.Errorf("open %s: its source has no ranges; read it from its start: %w", i.Name, errors.ErrUnsupported)
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

// Check returns ErrChanged if the item has changed since it was found. Call it at the end; remote reads check anyway.
func (i *Item) Check() error {
	if c, ok := i.src.(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}

// Open opens an item for reading from its start. The context bounds every read. io.EOF is returned only at the input's
// end: after exactly Size bytes if the size is known. Standard input opens once. A named pipe waits for a writer.
func (i *Item) Open(ctx context.Context) (io.ReadCloser, error) {
	r, err := i.src.open(ctx)
	if err != nil || i.observe == nil {
		return r, err
	}
	return &observedStream{ReadCloser: r, observe: i.observe}, nil
}

// Options say how arguments are interpreted. The zero value is usable.
type Options struct {
	Stdin       io.Reader    // read for Stdin; nil means os.Stdin
	HTTPClient  *http.Client // nil for one that uses the environment's proxy; its Transport serves oss:// too
	OSS         objectstore.OSS
	S3          objectstore.S3
	PathColumns bool     // make columns of k=v folders
	Extensions  []string // of files taken from folders and prefixes, such as ".csv"; nil for all
	Retry       Retry
	// NotData says what a folder or file without data is, such as "run folder"; "" if it is data. It is called for paths
	// found by a walk or a glob, not for arguments. Nil means that everything is data.
	NotData func(name string, folder bool) string
	// Unread returns an error that explains how to read an address that names no files, or nil. It may be nil.
	Unread func(address string) error
}

// Set is the result of expanding arguments.
type Set struct {
	Items    []Item   // in the order of the arguments, within an argument by name
	Warnings []string // for users, one sentence each
	Unread   []string // omitted although it may hold data, or possibly truncated

	Exported time.Time // time of the earliest DynamoDB export, or zero
}

// Expand finds the inputs that arguments name, in order, each once. One that matches nothing is an fs.ErrNotExist.
//
// An existing name is that file or folder even if it looks like a glob; @list is always a manifest and - always
// standard input (for files with such names write ./@list and ./-). A folder means the files below it; hidden ones,
// whose names begin with . or _, are left out unless an argument or glob spells the mark, and links to folders are not
// followed. NotData's paths are left out too, with one warning, and so are leftovers such as a.csv~ and b.csv.tmp.
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
			continue // an error only if all others match nothing either
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
			"objects: %s; name one to read it",
			len(e.passed.dotted), someOf(e.passed.dotted))
	}
	if e.passed.unfinished {
		e.unread(left, len(e.passed.left), someOf(e.passed.left))
	} else if len(e.passed.left) > 0 {
		e.warn(left, len(e.passed.left), someOf(e.passed.left))
	}
	e.warnOfCopies()
	return &e.set, nil
}

// ErrNothing is Expand's error if all arguments are globs, folders and prefixes, and match nothing.
var ErrNothing = errors.New("there is no input")

type expander struct {
	options  Options
	set      Set
	number   int                            // number of the current argument
	alike    map[string]int                 // number of addresses shown by the same name
	seen     map[string]int                 // from identity to the number of the argument that named it
	repeats  []string                       // names in the current argument that an earlier one named
	services map[string]objectstore.Service // by scheme, created on first use
	// listedBy is the server whose list is being read, or nil.
	listedBy *remote
	tables   map[string]*tableAt // by folder: the table that it is in, or nil
	asked    map[string]string   // results of NotData, by path
	skipped  []string            // paths left out because of NotData
	passed   passed              // files left out because of their names
	plain    bool                // a DynamoDB export's list is read like any other file
}

// passed holds files that were left out because of their names.
type passed struct {
	left       []string // names of leftovers
	unfinished bool     // one of left is an unfinished file
	dotted     []string // objects with a folder . or .. in their keys
	met        bool     // a file was left out since met was last reset
}

func newExpander(o Options) *expander {
	o.HTTPClient = cmp.Or(o.HTTPClient, defaultHTTPClient)
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	o.Retry = o.Retry.withDefaults()
	return &expander{options: o, seen: map[string]int{}, alike: map[string]int{}, asked: map[string]string{},
		services: map[string]objectstore.Service{}, tables: map[string]*tableAt{}}
}

// argument adds the inputs of one argument. A relative name not found in the working directory is looked up in dir.
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
	default: // Unread knows the other schemes
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

// SchemeOf returns the scheme of an address in lower case; "" for a path.
func SchemeOf(arg string) string {
	scheme, _, found := strings.Cut(arg, "://")
	if !found || strings.ContainsAny(scheme, "/*?[{") {
		return ""
	}
	return strings.ToLower(scheme)
}

// Path returns the path of a literal file:// address on this machine, and any other argument unchanged.
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

// add adds an item unless it was added before. A repeat within one argument, as of a folder and its file, is silent.
func (e *expander) add(i Item, identity string) {
	if number, ok := e.seen[identity]; ok {
		if number != e.number {
			e.repeats = append(e.repeats, i.Name)
		}
		return
	}
	e.seen[identity] = e.number
	if r, ok := i.src.(*remote); ok {
		// Two addresses may differ only in hidden parts. The number of an address among its equals is the same in every run.
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

// warn keeps each warning once: a glob may match the same folder twice.
func (e *expander) warn(format string, a ...any) {
	if w := fmt.Sprintf(format, a...); !slices.Contains(e.set.Warnings, w) {
		e.set.Warnings = append(e.set.Warnings, w)
	}
}

// unread keeps a warning that data may be missing.
func (e *expander) unread(format string, a ...any) {
	e.warn(format, a...)
	if w := fmt.Sprintf(format, a...); !slices.Contains(e.set.Unread, w) {
		e.set.Unread = append(e.set.Unread, w)
	}
}

// wanted reports whether Extensions include a file found in a folder.
func (e *expander) wanted(name string) bool {
	for _, x := range e.options.Extensions {
		if strings.HasSuffix(strings.ToLower(name), strings.ToLower(x)) {
			return true
		}
	}
	return len(e.options.Extensions) == 0
}

// isData reports whether NotData accepts a path that is not an argument; it notes the others as skipped.
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

// shownSkipped limits the names of skipped files in a warning.
const shownSkipped = 5

func someOf(names []string) string {
	shown := strings.Join(names[:min(len(names), shownSkipped)], ", ")
	if n := len(names) - shownSkipped; n > 0 {
		shown += fmt.Sprintf(" and %d more", n)
	}
	return shown
}

// hidden reports whether a name is not data by the convention of Hadoop and of shells: .part.crc, _SUCCESS, _temporary.
// A partition folder may begin with _. In keys, the names . and .. have no meaning.
func hidden(name string, folder bool) bool {
	if name == "." || name == ".." {
		return false
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !(folder && strings.Contains(name, "="))
}
