package export

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Layout is the format and folder structure of a lake's files.
type Layout struct {
	archive.Layout
	folders []folderOf
}

// folderOf is a partition folder name=value.
type folderOf struct {
	name string
	of   *keyexpr.Where
}

// noValue is the folder name, as in Hive, for rows for which the expression has no value.
const noValue = "__HIVE_DEFAULT_PARTITION__"

// ParsePlace splits a place such as oss://b/orders/dt={day(at)}/ into the place of the lake and the folders below it.
func ParsePlace(place, format string) (base string, l *Layout, err error) {
	l = &Layout{Layout: archive.Layout{Format: format}}
	base, pattern := place, ""
	if brace := strings.IndexByte(place, '{'); brace >= 0 {
		at := strings.LastIndexByte(place[:brace], '/') + 1
		base, pattern = cmp.Or(place[:at], "."), strings.TrimSuffix(place[at:], "/")
	}
	l.Layout.Folders = pattern
	for rest := pattern; rest != ""; {
		folder, more, ends := strings.Cut(rest+"/", "}/")
		name, text, begins := strings.Cut(folder, "={")
		again := slices.ContainsFunc(l.folders, func(f folderOf) bool { return strings.EqualFold(f.name, name) })
		if !begins || !ends || again || string(appendFolder(nil, []byte(name))) != name || name == "" ||
			strings.ContainsAny(name[:1], "._") {
			return "", nil, fmt.Errorf("%q: want NAME={EXPRESSION}, such as dt={day(at)}, with a unique NAME that needs no "+
				"escaping and does not begin with . or _", rest)
		}
		of, err := keyexpr.CompileOfRows("text("+text+")", name)
		if err != nil {
			return "", nil, err
		}
		l.folders, rest = append(l.folders, folderOf{name, of}), strings.TrimSuffix(more, "/")
	}
	return base, l, nil
}

// appendFolder appends text, escaped as Hive escapes folder names.
func appendFolder(dst, text []byte) []byte {
	for _, c := range text {
		if c < ' ' || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{[]^`, c) >= 0 {
			dst = fmt.Appendf(dst, "%%%02X", c)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// lake is an export to many files with the same columns, which are known only after the last row is read.
type lake struct {
	*ArchiveConfig
	w      *archive.Writer
	header []string        // key columns
	wanted map[string]bool // attributes; nil means all

	mu      sync.Mutex
	columns []archive.FileColumn // only appended to, so positions do not change
	place   map[string]int
	unknown UnknownFolders
}

// UnknownFolders counts rows for which a folder's expression failed in this process. Why is the first reason.
type UnknownFolders struct {
	Rows int64
	Why  string
}

func newLake(c *ArchiveConfig) (*lake, error) {
	l := &lake{ArchiveConfig: c, wanted: wantedOf(c.Scan.Columns), place: map[string]int{}}
	for _, k := range c.Scan.Table.Key {
		l.header = append(l.header, k.Name)
		if err := l.check(k.Name); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// check returns an error for a column name that is the name of a partition folder or is not UTF-8.
func (l *lake) check(column string) error {
	for _, f := range l.Lake.folders {
		if strings.EqualFold(f.name, column) {
			return &CannotHold{fmt.Sprintf("the folders %s={…} have the same name as the column %q, so programs that read them "+
				"would confuse the two; rename the folders in -o, such as %s_folder={…}",
				f.name, column, f.name)}
		}
	}
	if !utf8.ValidString(column) {
		return &CannotHold{fmt.Sprintf("the name of the column %q is not UTF-8; leave the column out (--columns), or keep "+
			"everything with --format archive", column)}
	}
	return nil
}

func (l *lake) known() []archive.FileColumn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.columns
}

// learn records a column and a type of its values. Null records only the column.
func (l *lake) learn(name string, t table.Type) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	place, there := l.place[name]
	if !there {
		if err := l.check(name); err != nil {
			return err
		}
		place = len(l.columns)
		l.place[name], l.columns = place, append(l.columns, archive.FileColumn{Name: name})
	}
	types := l.columns[place].Types
	if t == table.Null || slices.Contains(types, t) {
		return nil
	}
	if types = append(slices.Clone(types), t); l.Lake.Format == Parquet && len(types) > 1 {
		return severalTypes(name, types[0].String()+", "+types[1].String())
	}
	l.columns = slices.Clone(l.columns) // other goroutines may be reading the old slice
	l.columns[place].Types = types
	return nil
}

// lookedRanges limits the sample that determines the initial columns. Later columns require rewriting files.
const lookedRanges = 32

var lookedRangeBytes = 64 << 10 // lowered by tests

// begin takes the initial columns from an interrupted export, or from the table's definition and a sample of its rows.
func (l *lake) begin(ctx context.Context, w *archive.Writer, sources []source.Source) error {
	l.w = w
	for i, column := range w.Columns() {
		l.columns, l.place[column.Name] = append(l.columns, column), i
	}
	w.Grows(l.known)
	if len(l.columns) > 0 {
		return nil
	}
	types := map[string][]table.Type{}
	for name, t := range l.Scan.Table.Defined {
		types[name] = []table.Type{t}
	}
	var mu sync.Mutex
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(l.Readers)
	for i := 0; i < len(sources); i += max(1, len(sources)/lookedRanges) {
		group.Go(func() error {
			_, err := sources[i].Sample(lookedRangeBytes, nil, func(rec *record.Record) {
				mu.Lock()
				defer mu.Unlock()
				for _, c := range rec.Cells {
					t := kindTypes[c.Kind]
					if has := types[string(c.Name)]; !slices.Contains(has, t) {
						types[string(c.Name)] = append(has, t)
					}
				}
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	names := l.Scan.Columns
	if names == nil {
		names = slices.Sorted(maps.Keys(types))
	}
	for _, name := range names {
		if len(types[name]) == 0 && l.Lake.Format == Parquet {
			continue // the type is not known yet
		}
		for _, t := range append(types[name], table.Null) {
			if err := l.learn(name, t); err != nil {
				return err
			}
		}
	}
	return nil
}

var kindTypes = map[record.Kind]table.Type{record.Integer: table.Integer, record.Double: table.Double,
	record.Boolean: table.Boolean, record.String: table.String, record.Binary: table.Binary}

// finish adds missing columns to files, because programs assume that all files have the same columns.
func (l *lake) finish(ctx context.Context) (*archive.LakeManifest, error) {
	if err := l.w.Rewrite(ctx, l.Readers, func(body []byte, width int, rows int64) (*archive.Encoded, error) {
		if l.Lake.Format == Parquet {
			return widenParquet(body, l.Scan.Table.Key, l.known())
		}
		return l.widenCSV(body, width, rows)
	}); err != nil {
		return nil, err
	}
	return l.w.FinishLake()
}

type lakeRange struct {
	*lake
	rng    int
	tests  []*keyexpr.Test // tests of the partition folders
	fields scan.Fields
	folder []byte
	open   map[string]*heldRows // rows held in memory, by folder
	held   int64                // number of bytes in held rows
}

// folderBytes is the assumed memory of an open file without its rows. It limits the number of open folders.
const folderBytes = 64 << 10

// rowBytes is the memory of a held row in addition to its bytes.
const rowBytes = 24

func (l *lake) newRange(rng int) *lakeRange {
	r := &lakeRange{lake: l, rng: rng, fields: scan.Fields{Wanted: l.wanted}, open: map[string]*heldRows{}}
	for _, f := range l.Lake.folders {
		r.tests = append(r.tests, f.of.NewTest())
	}
	return r
}

func (r *lakeRange) Row(rec *record.Record) error {
	r.fields.Read(rec.Packed)
	for i, v := range r.fields.Key {
		if err := checkText(r.Lake.Format, r.header[i], true, v); err != nil {
			return err
		}
	}
	for _, c := range r.fields.Cells {
		if t := c.Value.Type(); c.Types[t] == 0 {
			if err := r.learn(c.Name, t); err != nil {
				return err
			}
			c.Types[t] = 1
		}
		if err := checkText(r.Lake.Format, c.Name, true, c.Value); err != nil {
			return err
		}
	}
	r.setFolder(rec.Packed)
	to := r.open[string(r.folder)]
	if to == nil {
		to = new(heldRows)
		r.open[string(r.folder)] = to
		r.held += folderBytes
	}
	to.add(rec.Packed)
	r.held += int64(len(rec.Packed)) + rowBytes
	return nil
}

func (r *lakeRange) setFolder(row []byte) {
	r.folder = r.folder[:0]
	for i, f := range r.Lake.folders {
		r.folder = append(append(r.folder, f.name...), '=')
		v, why := r.tests[i].Value(func(name string) table.Value { return plainbuffer.Newest(row, name) })
		if why != nil {
			r.mu.Lock()
			r.unknown.Rows++
			r.unknown.Why = cmp.Or(r.unknown.Why, why.Message)
			r.mu.Unlock()
		}
		if why != nil || len(v.Bytes) == 0 {
			r.folder = append(r.folder, noValue...)
		} else {
			r.folder = appendFolder(r.folder, v.Bytes)
		}
		r.folder = append(r.folder, '/')
	}
}

func (r *lakeRange) Text() int64 { return r.held }

// Abandon does nothing, because the held rows are only in memory.
func (r *lakeRange) Abandon() error { return nil }

func (r *lakeRange) Commit(next []byte) error {
	at := r.w.Range(r.rng)
	file := fmt.Sprintf("part-%05d-%05d.%s", r.rng+1, at.Parts+1, r.Lake.Format)
	if len(r.open) == 0 && r.rng == 0 && at.Parts == 0 && len(r.Lake.folders) == 0 {
		r.open[""] = new(heldRows) // programs need at least one file in the folder
	}
	files := map[string]*heldRows{}
	for folder, held := range r.open {
		files[folder+file] = held
	}
	for _, name := range r.w.Owed(r.rng) {
		if files[name] == nil {
			files[name] = new(heldRows)
		}
	}
	if len(files) == 0 {
		return r.w.End(r.rng)
	}
	encode := func(name string) (*archive.Encoded, error) {
		held := files[name]
		delete(files, name) // frees its memory
		return r.encode(held)
	}
	clear(r.open)
	r.held = 0
	return r.w.Put(r.rng, slices.Sorted(maps.Keys(files)), encode, next)
}
