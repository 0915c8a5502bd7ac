package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

// Format and version in a lake's manifest. A lake is a set of files with a common schema that others read as one table.
const (
	LakeFormat  = "tsimport-lake"
	LakeVersion = 1
)

// LakeManifestName is the file that describes a lake. Programs that read folders skip names with a leading underscore.
const LakeManifestName = "_manifest.json"

var lakeName = regexp.MustCompile(`^([^/=]+=[^/]*/)*part-\d{5,}-\d{5,}\.(csv|csv\.gz|csv\.zst|parquet)$`)

// Layout is the format of a lake's files and the names of their folders.
type Layout struct {
	Format  string `json:"format"`            // csv, csv.gz, csv.zst or parquet
	Folders string `json:"folders,omitempty"` // pattern given by the user, such as dt={day(at)}
}

func (l *Layout) facts() []progress.Fact {
	return []progress.Fact{{Name: "--format", Value: l.Format}, {Name: "the folders of -o", Value: l.Folders}}
}

// FileColumn is an attribute column with the types of its values. Types is empty if no row has the column.
type FileColumn struct {
	Name  string       `json:"name"`
	Types []table.Type `json:"types"`
}

// growth returns the columns that are missing in before or have fewer types there.
func growth(before, columns []FileColumn) (grown []FileColumn) {
	for i, c := range columns {
		if i >= len(before) || len(before[i].Types) < len(c.Types) {
			grown = append(grown, c)
		}
	}
	return grown
}

type LakeManifest struct {
	Format  string            `json:"format"`
	Version int               `json:"version"`
	Table   string            `json:"table"`
	Target  string            `json:"target"`        // address of the table
	Created int64             `json:"creation_time"` // creation of the table, in microseconds since 1970; 0 if unknown
	Key     []table.KeyColumn `json:"primary_key"`
	Layout  Layout            `json:"layout"`
	Columns []FileColumn      `json:"columns"` // columns after the key in every file, in this order
	Holds   Selection         `json:"holds"`
	Began   time.Time         `json:"scan_began"`
	Ended   time.Time         `json:"scan_ended"`
	Rows    int64             `json:"rows"`
	Bytes   int64             `json:"bytes"` // total size of all files
	Files   []LakeFile        `json:"files"`
}

type LakeFile struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (w *Writer) Columns() []FileColumn { return w.columns }

// Grows sets the function that returns all columns found so far. The journal records their changes.
func (w *Writer) Grows(columns func() []FileColumn) { w.grown = columns }

// Owed returns the files whose put by an interrupted export may take effect late. The caller must put them again.
func (w *Writer) Owed(rng int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsettled[rng]
}

type Encoded struct {
	Body  []byte
	Rows  int64
	Width int
}

func (f *Encoded) part(rng int, name string) *Part {
	sum := sha256.Sum256(f.Body)
	return &Part{Name: name, Range: rng, Rows: f.Rows, Bytes: int64(len(f.Body)), SHA256: hex.EncodeToString(sum[:]),
		Width: f.Width}
}

// Put puts files made by encode, which contain the range's next rows. next is the range's new position; nil ends it.
func (w *Writer) Put(rng int, names []string, encode func(name string) (*Encoded, error), next []byte) error {
	at := w.Range(rng)
	if err := cmp.Or(w.note(entry{Range: rng, At: at, Puts: names}), w.step("files announced")); err != nil {
		return err
	}
	e := entry{Range: rng, At: Progress{Next: next, Rows: at.Rows, Parts: at.Parts + 1, Ended: next == nil}}
	for _, name := range names {
		f, err := encode(name)
		if err != nil {
			return err
		}
		if err := w.place.put(name, f.Body); err != nil {
			return fmt.Errorf("write %s: %w", w.place.Path(name), err)
		}
		if err := w.step("file put"); err != nil {
			return err
		}
		e.Files = append(e.Files, f.part(rng, name))
		e.At.Rows += f.Rows
	}
	return cmp.Or(w.note(e), w.step("files noted"))
}

// Rewrite rewrites files with fewer columns than others, up to atATime concurrently. All ranges must be complete.
func (w *Writer) Rewrite(ctx context.Context, atATime int, rewrite func(body []byte, width int, rows int64) (*Encoded,
	error)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, p := range slices.Clone(w.parts) {
		if p.Width == len(w.columns) {
			continue
		}
		group.Go(func() error {
			if err := w.rewrite(ctx, &p, rewrite); err != nil {
				return fmt.Errorf("rewrite %s, which has fewer columns than others: %w", w.place.Path(p.Name), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (w *Writer) rewrite(ctx context.Context, p *Part, rewrite func(body []byte, width int, rows int64) (*Encoded,
	error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	in, err := w.place.Open(ctx, p.Name)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return err
	}
	was := (&Encoded{Body: body}).part(p.Range, p.Name)
	f, err := rewrite(body, p.Width, p.Rows) // unchanged if an interrupted run rewrote it before noting it
	if err == nil && (was.SHA256 != p.SHA256 && !bytes.Equal(f.Body, body) || f.Rows != p.Rows) {
		err = errors.New("it was changed after it was written; " + progress.StartOver)
	}
	if err == nil {
		err = w.place.replace(p.Name, f.Body)
	}
	if err != nil {
		return err
	}
	if err := w.step("file rewritten"); err != nil {
		return err
	}
	return cmp.Or(w.note(entry{Range: p.Range, At: w.Range(p.Range), Files: []*Part{f.part(p.Range, p.Name)}}),
		w.step("rewriting noted"))
}

// Discard removes all files of the export. It is for an export whose resumption would fail again.
func (w *Writer) Discard() error {
	w.subject = Subject{}
	return cmp.Or(w.clear(func(string) bool { return false }), w.place.clean())
}

// FinishLake writes the manifest of a lake and removes the journal.
func (w *Writer) FinishLake() (*LakeManifest, error) {
	s := &w.subject
	m := &LakeManifest{
		Format: LakeFormat, Version: LakeVersion, Table: s.Table, Target: s.Target, Created: s.Created, Key: s.Key,
		Layout: s.Layout, Holds: s.Holds, Columns: append([]FileColumn{}, w.columns...), Began: s.Began,
		Ended: time.Now().UTC().Truncate(time.Millisecond), Files: []LakeFile{},
	}
	if !w.ended() {
		return nil, errors.New("finish export: a range is not complete")
	}
	for _, p := range w.parts {
		m.Rows, m.Bytes, m.Files = m.Rows+p.Rows, m.Bytes+p.Bytes,
			append(m.Files, LakeFile{p.Name, p.Rows, p.Bytes, p.SHA256})
	}
	slices.SortFunc(m.Files, func(a, b LakeFile) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(m, "", " ")
	if err == nil {
		err = w.end(append(text, '\n'))
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}
