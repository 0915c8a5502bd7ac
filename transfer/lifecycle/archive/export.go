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
	"path"
	"path/filepath"
	"slices"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/rundir"
	exact "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/export"
)

// maxTries limits the number of exports of a table that keeps changing.
const maxTries = 3

const (
	lockName  = ".tsimport-age.lock" // file that is locked while exports may be written to its folder
	leaseName = ".tsimport-age"      // prefix of the lease in an object store
)

// Place is a folder or object store with exports, for one writing process. It is not safe for concurrent use.
type Place struct {
	OnWait    func(who string) // if not nil, called before a wait for another process that may write to the store
	PartBytes int64            // see export.ArchiveConfig

	store jobdir.Store // the object store, or a store in the folder
	dir   string       // "" for an object store
	lock  *rundir.Lock
	lease *jobdir.Lease
}

// At returns the place at name: a folder, which may be missing, oss://bucket/prefix or s3://bucket/prefix.
func At(ctx context.Context, name string, o jobdir.Options) (*Place, error) {
	store, err := jobdir.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	p := &Place{store: store}
	if !jobdir.IsAddress(name) {
		p.dir = name
	}
	return p, nil
}

// Subject is a table to archive.
type Subject struct {
	Target string           // place of the table, as in manifests
	Scan   tablescan.Config // a scan of the whole table
}

// ChangedError means that a table differs from its export.
type ChangedError struct {
	Table, File   string
	Rows, InTable int64
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("table %s has changed since its export: %s has %d rows and the table %d, and they differ; stop "+
		"writing to the table", e.Table, e.File, e.Rows, e.InTable)
}

// DamagedError means that the archive of an export is damaged.
type DamagedError struct{ File, Why string }

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Why) }

// AnotherHelps reports whether another export would help after an error of Verify.
func AnotherHelps(err error) bool {
	return errors.As(err, new(*ChangedError)) || errors.As(err, new(*DamagedError))
}

// Lock creates the place if necessary and keeps others from writing to it until Close.
func (p *Place) Lock(ctx context.Context) (err error) {
	if p.dir == "" {
		below := jobdir.Below(p.store, leaseName)
		if err := jobdir.Probe(ctx, below); err != nil {
			return err
		}
		p.lease, err = jobdir.Acquire(ctx, below, jobdir.LeaseOptions{Wait: 2 * jobdir.Term, OnWait: p.OnWait})
		return err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("create archive folder: %w", err)
	}
	p.lock, err = rundir.TakeBeside(filepath.Join(p.dir, lockName), "")
	if errors.As(err, new(*rundir.HeldError)) {
		return fmt.Errorf("archive folder %s is in use by another tsimport age process; wait for it to end", p.dir)
	}
	if err != nil {
		return fmt.Errorf("lock archive folder %s: %w", p.dir, err)
	}
	return nil
}

// Close unlocks the place. If its lease cannot be released, another process can take it over once it expires.
func (p *Place) Close() (err error) {
	if p.lease != nil {
		_ = p.lease.Release()
	}
	if p.lock != nil {
		err = p.lock.Release()
	}
	p.lock, p.lease = nil, nil
	return err
}

// held returns an error if the process has lost its lease and must not write.
func (p *Place) held() error {
	if p.lease == nil {
		return nil
	}
	return p.lease.Check()
}

// Export makes and verifies a new export of a table, or continues one. A table that keeps changing is a *ChangedError.
//
// A put of a killed process may reach the store much later, so a manifest may be out of date. Export therefore compares
// every complete archive that it did not make, in any state, with the table. If they differ, it keeps the archive.
func (p *Place) Export(ctx context.Context, s *Subject) (*Manifest, error) {
	name := s.Scan.Table.Name
	_, at, err := p.places(ctx, s.Target, name, 1)
	for err == nil && at.held != nil {
		if _, err = p.store.Get(ctx, at.held.File+"/"+exact.ManifestName); errors.Is(err, fs.ErrNotExist) {
			err = nil
			break
		}
		if err == nil {
			if err = p.Verify(ctx, at.held, s); err == nil {
				return at.held, nil
			}
		}
		if AnotherHelps(err) {
			_, at, err = p.places(ctx, s.Target, name, at.number+1)
		}
	}
	if err != nil {
		return nil, err
	}
	continues := at.held != nil && at.held.State == Archiving
	for try := 1; ; try++ {
		m, err := p.write(ctx, s, at.number, !continues)
		if cannot := errors.As(err, new(*exact.ChangedError)) || errors.As(err, new(*exact.UnusableError)); cannot &&
			continues {
			m, err = p.write(ctx, s, at.number, true)
		}
		if err != nil {
			return nil, fmt.Errorf("export table %s: %w", name, err)
		}
		if err = p.Verify(ctx, m, s); err == nil {
			return m, nil
		}
		if !AnotherHelps(err) {
			return nil, err
		}
		if wrong := cmp.Or(p.held(), p.store.Delete(ctx, m.File+"/"+exact.ManifestName)); wrong != nil || try == maxTries {
			return nil, errors.Join(err, wrong)
		}
		continues = false
	}
}

// write makes an export's archive. It first writes the manifest beside it: an archive without one is another program's.
func (p *Place) write(ctx context.Context, s *Subject, number int, fresh bool) (*Manifest, error) {
	name := s.Scan.Table.Name
	m := &Manifest{Table: name, Target: s.Target, File: stem(name, number), Format: "archive", State: Archiving,
		number: number}
	if err := p.put(ctx, m); err != nil {
		return nil, err
	}
	c := export.ArchiveConfig{Scan: s.Scan, Target: s.Target, Fresh: fresh, OnWait: p.OnWait, PartBytes: p.PartBytes}
	if p.dir != "" {
		c.Dir = filepath.Join(p.dir, m.File)
	} else {
		c.Store = jobdir.Below(p.store, m.File)
	}
	_, err := export.ToArchive(ctx, c)
	return m, err
}

func now() *time.Time { return new(time.Now().UTC().Truncate(time.Second)) }

// Verify reads an archive back and compares it with the table. The error may be a *DamagedError or a *ChangedError.
func (p *Place) Verify(ctx context.Context, m *Manifest, s *Subject) error {
	a, kept, err := p.readBack(ctx, m)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*exact.DamagedError)), errors.As(err, new(*badRow)), errors.Is(err, fs.ErrNotExist):
		return &DamagedError{p.Path(m), err.Error()}
	case err != nil:
		return fmt.Errorf("read export %s: %w", p.Path(m), err)
	case m.Complete() && (kept.rows != m.Rows || kept.sum() != m.SHA256):
		return &DamagedError{p.Path(m), fmt.Sprintf("it has %d rows with sha256 %s, but %s says %d with %s",
			kept.rows, kept.sum(), manifestName(m.Table, m.number), m.Rows, m.SHA256)}
	}
	t := s.Scan.Table
	present, err := digestOf(ctx, tablescan.New(s.Scan), t.Key)
	if err != nil {
		return fmt.Errorf("compare table %s with its export: %w", m.Table, err)
	}
	if another := !m.Complete() && a.Created != t.Created; another || present.rows != kept.rows ||
		present.sum() != kept.sum() {
		return &ChangedError{m.Table, p.Path(m), kept.rows, present.rows}
	}
	m.State, m.Rows, m.Bytes, m.SHA256, m.VerifiedAt, m.DroppedAt = Verified, kept.rows, a.Bytes, kept.sum(), now(), nil
	m.ExportedAt = cmp.Or(m.ExportedAt, new(a.Ended.Truncate(time.Second)))
	return p.put(ctx, m)
}

// readBack reads an export's archive as a load would, and compares each part with the archive's manifest.
func (p *Place) readBack(ctx context.Context, m *Manifest) (*exact.Manifest, *digest, error) {
	a, err := p.archive(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	origin := exact.New(a)
	origin.ByParts()
	kept, err := digestOf(ctx, origin, a.Key)
	return a, kept, err
}

// archive returns an export's archive according to its own manifest.
func (p *Place) archive(ctx context.Context, m *Manifest) (*exact.Manifest, error) {
	if p.dir != "" {
		return exact.Read(filepath.Join(p.dir, m.File))
	}
	return exact.ReadFrom(ctx, exact.FilesIn(ctx, jobdir.Below(p.store, m.File)))
}

// Whole reports, without reading rows, whether the export's archive exists. In a folder, it also checks sizes.
func (p *Place) Whole(ctx context.Context, m *Manifest) (bool, error) {
	a, err := p.archive(ctx, m)
	if errors.As(err, new(*exact.DamagedError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if a.Rows != m.Rows || a.Bytes != m.Bytes {
		return false, nil
	}
	if p.dir != "" {
		return a.CheckSizes(ctx) == nil, nil
	}
	names, err := p.store.List(ctx, m.File+"/")
	return err == nil && !slices.ContainsFunc(a.Parts,
		func(part exact.Part) bool { return !slices.Contains(names, path.Join(m.File, part.Name)) }), err
}

// MarkDropped records that a verified export's table is about to be dropped. A later table of its name is another one.
func (p *Place) MarkDropped(ctx context.Context, m *Manifest) error {
	m.State, m.DroppedAt = Dropped, now()
	return p.put(ctx, m)
}

// digest counts rows and hashes their lines. It sorts cells by name and age, so that every reading has the same hash.
type digest struct {
	hash hash.Hash
	rows int64
	key  []string
	line []byte
	bad  error // reason of the first record that is not a row
}

type badRow struct{ error }

func digestOf(ctx context.Context, from source.Origin, key []table.KeyColumn) (*digest, error) {
	d := &digest{hash: sha256.New()}
	for _, k := range key {
		d.key = append(d.key, k.Name)
	}
	division, err := from.Divide(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := from.Open(ctx, division)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		if err := errors.Join(d.take(ctx, part), part.Close()); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *digest) take(ctx context.Context, part source.Source) error {
	parser := part.NewParser(nil)
	for split, err := range source.Splits(part) {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		if _, _, err = parser.Parse(split, d.add); cmp.Or(err, d.bad) != nil {
			return cmp.Or(err, d.bad)
		}
	}
	return nil
}

func (d *digest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// add adds a record. It sorts the record's cells.
func (d *digest) add(rec *record.Record) {
	if rec.Bad != nil {
		d.bad = cmp.Or(d.bad, error(&badRow{fmt.Errorf("row %d: %s", d.rows+1, rec.Bad.Message)}))
		return
	}
	slices.SortFunc(rec.Cells, func(a, b record.Cell) int {
		return cmp.Or(bytes.Compare(a.Name, b.Name), cmp.Compare(b.At, a.At))
	})
	d.line = jsonl.AppendWhole(d.line[:0], d.key, rec)
	d.hash.Write(d.line)
	d.rows++
}
