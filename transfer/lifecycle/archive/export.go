package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/rundir"
	exact "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/tablescan"
)

// maxTries is how often an export is made of a table that is found changed each time.
const maxTries = 3

// lockName is a file in the folder that is locked as long as exports may be written there.
const lockName = ".tsimport-age.lock"

// Folder is a folder of exports that is open for writing, by one process at a time. It is not safe for concurrent use.
type Folder struct {
	Dir  string
	lock *rundir.Lock

	partBytes int64 // about how much text a part of an archive has
}

// Subject is a table to be kept.
type Subject struct {
	Target, Table string
	Created       int64 // as manifests have it
	Key           []table.KeyColumn
	Is            exact.Manifest // its options, predefined columns and indexes
	// Rows calls its argument with every row in key order, with all versions of its cells. It is called twice and more, and each call reads the table
	// again. A row is valid during the call.
	Rows func(each func(*scan.Row) error) error
}

// ChangedError says that a table is not what its export has.
type ChangedError struct {
	Table, File   string
	Rows, InTable int64
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("table %s has changed since it was exported: %s has %d rows, the table now has %d, not the same ones; stop writing to it",
		e.Table, e.File, e.Rows, e.InTable)
}

// DamagedError says that the archive of an export is not what was written.
type DamagedError struct{ File, Why string }

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Why) }

// Open opens a folder, which is made if it is missing.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make archive folder: %w", err)
	}
	lock, err := rundir.TakeBeside(filepath.Join(dir, lockName), "")
	if errors.As(err, new(*rundir.HeldError)) {
		return nil, fmt.Errorf("archive folder %s is in use by another tsimport age; wait for it to end", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock archive folder %s: %w", dir, err)
	}
	return &Folder{Dir: dir, lock: lock, partBytes: 64 << 20}, nil
}

// Close lets others have the folder.
func (f *Folder) Close() error { return f.lock.Release() }

// Export makes a new export of a table and verifies it. One that was begun and not verified is finished if it is whole and the
// table still the same, else made again. A table that changes all the time is a ChangedError.
func (f *Folder) Export(ctx context.Context, s *Subject) (*Manifest, error) {
	_, at, err := places(f.Dir, s.Target, s.Table)
	if err != nil {
		return nil, err
	}
	m := at.held
	for try := 0; ; try++ {
		if m == nil || m.State != Exported {
			if m, err = f.write(s, at.number); err != nil {
				return nil, err
			}
		}
		err := f.Verify(ctx, m, s)
		if err == nil {
			return m, nil
		}
		changed, damaged := new(ChangedError), new(DamagedError)
		again := errors.As(err, &changed) || errors.As(err, &damaged)
		if !again || try == maxTries-1 {
			return nil, err
		}
		m = nil
	}
}

// write makes the archive of an export. The manifest beside it comes first, so that a folder without one is known to be another's.
func (f *Folder) write(s *Subject, number int) (*Manifest, error) {
	m := &Manifest{Table: s.Table, Target: s.Target, File: stem(s.Table, number), Format: "archive", State: Exporting, number: number}
	if err := m.write(f.Dir); err != nil {
		return nil, err
	}
	made, written, err := s.writeTo(filepath.Join(f.Dir, m.File), f.partBytes)
	if err != nil {
		return nil, fmt.Errorf("export table %s: %w", s.Table, err)
	}
	m.State, m.Rows, m.Bytes, m.SHA256, m.ExportedAt = Exported, written.rows, made.Bytes, written.sum(), now()
	return m, m.write(f.Dir)
}

// writeTo makes an archive in a folder, in place of one that was not verified.
func (s *Subject) writeTo(dir string, partBytes int64) (made *exact.Manifest, written *digest, err error) {
	if err := os.Remove(filepath.Join(dir, exact.ManifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	w, err := exact.Open(dir, true)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Begin(exact.Subject{Table: s.Table, Target: s.Target, Created: s.Created, Key: s.Key, Ranges: []string{s.Table}, Began: *now()}); err != nil {
		return nil, nil, err
	}
	part, err := w.NewPart(0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if part != nil {
			err = errors.Join(err, part.Abandon())
		}
	}()
	commit := func(next []byte) error {
		full := part
		part = nil
		return full.Commit(next)
	}
	written = newDigest(s.Key)
	err = s.Rows(func(r *scan.Row) error {
		rec, err := written.row(r)
		if err != nil {
			return err
		}
		if part.Text() >= partBytes {
			if err = commit([]byte("more")); err == nil {
				part, err = w.NewPart(0)
			}
			if err != nil {
				return err
			}
		}
		return part.Row(rec)
	})
	if err == nil {
		err = commit(nil)
	}
	if err != nil {
		return nil, nil, err
	}
	made, err = w.Finish(s.Is)
	return made, written, err
}

func now() *time.Time {
	return new(time.Now().UTC().Truncate(time.Second))
}

// Verify reads the archive of an export back and the table again. The error is a DamagedError if the archive is not what was
// written, a ChangedError if the table is not what the archive has.
func (f *Folder) Verify(ctx context.Context, m *Manifest, s *Subject) error {
	kept, err := f.check(ctx, m)
	if err != nil {
		return err
	}
	present := newDigest(s.Key)
	err = s.Rows(func(r *scan.Row) error {
		_, err := present.row(r)
		return err
	})
	if err != nil {
		return fmt.Errorf("compare table %s with its export: %w", s.Table, err)
	}
	if present.rows != kept.rows || present.sum() != kept.sum() {
		return &ChangedError{s.Table, filepath.Join(f.Dir, m.File), kept.rows, present.rows}
	}
	m.State, m.VerifiedAt, m.DroppedAt = Verified, now(), nil
	return m.write(f.Dir)
}

// check reads an export's archive as a load does, and returns the digest of its rows. Each part is compared with the archive's manifest, and the
// text with what was written.
func (f *Folder) check(ctx context.Context, m *Manifest) (*digest, error) {
	dir := filepath.Join(f.Dir, m.File)
	kept, text, err := readBack(ctx, dir)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &DamagedError{dir, err.Error()}
	case kept.rows != m.Rows || text != m.SHA256:
		return nil, &DamagedError{dir, fmt.Sprintf("it has %d rows with sha256 %s, and %s says %d with %s",
			kept.rows, text, manifestName(m.Table, m.number), m.Rows, m.SHA256)}
	}
	return kept, nil
}

// readBack returns the digest of an archive's rows, and the sum of their lines as they stand there: those of version 1 are not those of the digest.
func readBack(ctx context.Context, dir string) (kept *digest, sum string, err error) {
	a, err := exact.Read(dir)
	if err != nil {
		return nil, "", err
	}
	parts, err := exact.New(a).Open(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	text := sha256.New()
	kept = newDigest(a.Key)
	for _, p := range parts {
		parser := p.NewParser(nil)
		for split, err := range source.Splits(p) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				text.Write(split.Data)
				_, _, err = parser.Parse(split, kept.add)
			}
			if err = cmp.Or(err, kept.bad); err != nil {
				return nil, "", errors.Join(err, p.Close())
			}
		}
		if err := p.Close(); err != nil {
			return nil, "", err
		}
	}
	return kept, hex.EncodeToString(text.Sum(nil)), nil
}

// MarkDropped notes that the table of a verified export is about to be dropped. It comes before that: a table of the same
// name that is there later is then known to be another one, unless it is found to be the same.
func (f *Folder) MarkDropped(m *Manifest) error {
	m.State, m.DroppedAt = Dropped, now()
	return m.write(f.Dir)
}

// digest counts rows and sums up their lines, in which cells are by name, the newest first: two readings of one table give the same.
type digest struct {
	hash    hash.Hash
	rows    int64
	key     []string
	records *tablescan.Records
	line    []byte
	bad     error // of the first row that is none
}

func newDigest(key []table.KeyColumn) *digest {
	d := &digest{hash: sha256.New(), records: tablescan.NewRecords(len(key))}
	for _, k := range key {
		d.key = append(d.key, k.Name)
	}
	return d
}

func (d *digest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// row takes a row of the table, and returns it as a record.
func (d *digest) row(r *scan.Row) (*record.Record, error) {
	rec, err := d.records.Of(r)
	if err == nil {
		d.add(rec)
	}
	return rec, err
}

// add takes a record, whose cells it sorts.
func (d *digest) add(rec *record.Record) {
	if rec.Bad != nil {
		d.bad = cmp.Or(d.bad, fmt.Errorf("row %d: %s", d.rows+1, rec.Bad.Message))
		return
	}
	slices.SortFunc(rec.Cells, func(a, b record.Cell) int {
		return cmp.Or(bytes.Compare(a.Name, b.Name), cmp.Compare(b.At, a.At))
	})
	d.line = jsonl.AppendWhole(d.line[:0], d.key, rec)
	d.hash.Write(d.line)
	d.rows++
}
