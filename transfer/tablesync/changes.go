package tablesync

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/verify"
)

// changesDir is the name of the folder with the changes, in the run folder.
const changesDir = "changes"

// changes writes the results of a comparison to files in the run folder, or only counts them.
type changes struct {
	dir string // "" means only count
	key []table.KeyColumn
	// rejects opens the file for rejected records. If it is nil, they are not kept.
	rejects   func([]rundir.Header) (*rundir.Folder, error)
	window    window   // timestamps that the table accepts
	unchanged bool     // rows to put include the table's former values, for --if-unchanged
	kept      []string // columns that an update always writes because --when compares them

	folder *rundir.Folder // open after the first rejected record
	mu     sync.Mutex
	total  totals
	put    []part
	delete []part
}

type totals struct {
	Lines       int64 `json:"lines"` // lines for rows to put; a key with several updates may have several
	PutUnits    int64 `json:"put_units"`
	DeleteUnits int64 `json:"delete_units"`
	Repeats     bool  `json:"repeats,omitempty"` // a key has several lines, in order

	unconditional int64 // rows to put for which no condition is possible
	outside       int64 // rows to put with a timestamp outside the window
	oldest        int64 // lowest timestamp of the rows to put, in milliseconds; 0 if there is none
	newest        int64
}

func (t *totals) add(r totals) {
	t.Lines += r.Lines
	t.PutUnits += r.PutUnits
	t.DeleteUnits += r.DeleteUnits
	t.Repeats = t.Repeats || r.Repeats
	t.outside += r.outside
	t.unconditional += r.unconditional
	if t.oldest == 0 || r.oldest > 0 && r.oldest < t.oldest {
		t.oldest = r.oldest
	}
	t.newest = max(t.newest, r.newest)
}

type part struct {
	Name   string `json:"name"` // in the folder of changes
	Rows   int64  `json:"rows"` // number of lines
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func (c *changes) Reject(headers []rundir.Header, header int, r table.Reject) (err error) {
	if c.rejects == nil {
		return nil
	}
	if c.folder == nil {
		if c.folder, err = c.rejects(headers); err != nil {
			return err
		}
	}
	return c.folder.Reject(header, r)
}

func (c *changes) Range(number int) (verify.RangeChanges, error) {
	return &rangeChanges{of: c, liner: newLiner(c), number: number}, nil
}

// Again removes the files of changes and resets the totals.
func (c *changes) Again() (err error) {
	for _, p := range slices.Concat(c.put, c.delete) {
		err = errors.Join(err, os.Remove(filepath.Join(c.dir, p.Name)))
	}
	c.put, c.delete, c.total = nil, nil, totals{}
	return err
}

func (c *changes) finish() {
	byName := func(a, b part) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(c.put, byName)
	slices.SortFunc(c.delete, byName)
}

type rangeChanges struct {
	of          *changes
	liner       *liner
	number      int
	line        []byte
	put, delete *partWriter
	total       totals
}

func (r *rangeChanges) Expected(c *verify.Change) error {
	line, made, err := r.liner.changed(r.line[:0], c)
	if err != nil {
		return fmt.Errorf("store a changed row: %w", err)
	}
	r.line = line
	n := made.Lines
	made.Repeats = n > 1
	if w := r.of.window; made.oldest > 0 && (made.oldest < w.from || made.newest > w.to) {
		made.outside = 1
	}
	r.total.add(made)
	return r.write(&r.put, "put", n)
}

func (r *rangeChanges) Surplus(key []table.Value) error {
	size := 0
	for i, v := range key {
		size += len(r.liner.columns[i]) + v.Size()
	}
	r.total.DeleteUnits += int64(table.CapacityUnits(size))
	r.line = r.liner.deleted(r.line[:0], key)
	return r.write(&r.delete, "delete", 1)
}

// write adds lines to a part. It creates the part for the first line.
func (r *rangeChanges) write(p **partWriter, kind string, lines int64) (err error) {
	if r.of.dir == "" {
		return nil
	}
	if *p == nil {
		if *p, err = newPart(r.of.dir, fmt.Sprintf("%s-%06d.ndjson.zst", kind, r.number)); err != nil {
			return err
		}
	}
	return (*p).write(r.line, lines)
}

func (r *rangeChanges) Close() error {
	put, err := r.put.close()
	del, delErr := r.delete.close()
	c := r.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put, c.delete = append(c.put, put...), append(c.delete, del...)
	c.total.add(r.total)
	return errors.Join(err, delErr)
}

type partWriter struct {
	made part
	file *os.File
	sum  hash.Hash
	zip  *zstd.Encoder
	err  error
}

// windowBytes is the compression window of a part. It is small because many parts are written concurrently.
const windowBytes = 256 << 10

func newPart(dir, name string) (*partWriter, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store changes: %w", err)
	}
	w := &partWriter{made: part{Name: name}, file: f, sum: sha256.New()}
	w.zip, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true))
	return w, err
}

func (w *partWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	w.sum.Write(b[:n])
	w.made.Bytes += int64(n)
	return n, err
}

func (w *partWriter) write(lines []byte, n int64) error {
	if _, err := w.zip.Write(lines); err != nil {
		w.err = fmt.Errorf("store changes: %w", err)
		return w.err
	}
	w.made.Rows += n
	return nil
}

// close returns the finished part, or none if no line was written.
func (w *partWriter) close() ([]part, error) {
	if w == nil {
		return nil, nil
	}
	err := w.zip.Close()
	if w.err != nil {
		err = nil // write has already returned the error
	}
	if err = errors.Join(err, atomicfile.Commit(w.file, w.file.Name())); err != nil {
		err = fmt.Errorf("store changes: %w", err)
	}
	w.made.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	return []part{w.made}, err
}

// check reads a part and returns an error if it has changed.
func (p *part) check(dir string) error {
	name := filepath.Join(dir, p.Name)
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read changes: %w; "+source.StartOver, err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	switch {
	case err != nil:
		return fmt.Errorf("read changes: %w", err)
	case n != p.Bytes || hex.EncodeToString(sum.Sum(nil)) != p.SHA256:
		return fmt.Errorf("read changes: %s is not what was written: it was changed or damaged; "+source.StartOver, name)
	}
	return nil
}
