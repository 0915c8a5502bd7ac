package archive

import (
	"bufio"
	"bytes"
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
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/gofrs/flock"

	"tsimport/internal/atomicfile"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/scan"
)

// maxTries is how often an export is made of a table that is found changed each time.
const maxTries = 3

// lockName is a file in the folder that is locked as long as exports may be written there.
const lockName = ".tsimport-age.lock"

// Folder is a folder of exports that is open for writing, by one process at a time. It is not safe for concurrent use.
type Folder struct {
	Dir  string
	lock *flock.Flock
}

// Subject is a table to be kept.
type Subject struct {
	Target, Table string
	Key           []table.KeyColumn
	TimeToLive    int // seconds
	MaxVersions   int
	// Rows calls its argument with every row in key order. It is called twice and more, and each call reads the table again.
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

// DamagedError says that an export's file is not what was written.
type DamagedError struct{ File, Why string }

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Why) }

// Open opens a folder, which is made if it is missing.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make archive folder: %w", err)
	}
	f := flock.New(filepath.Join(dir, lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	switch locked, err := f.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock archive folder %s: %w", dir, err)
	case !locked:
		return nil, fmt.Errorf("archive folder %s is in use by another tsimport age; wait for it to end", dir)
	}
	return &Folder{Dir: dir, lock: f}, nil
}

// Close lets others have the folder.
func (f *Folder) Close() error { return f.lock.Unlock() }

// Export makes a new export of a table and verifies it. One that was begun and not verified is finished if its file is
// whole and the table still the same, else made again. A table that changes all the time is a ChangedError.
func (f *Folder) Export(s *Subject) (*Manifest, error) {
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
		err := f.Verify(m, s)
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

// write makes the file of an export. The manifest comes first, so that a file without one is known to be another's.
func (f *Folder) write(s *Subject, number int) (*Manifest, error) {
	m := &Manifest{Table: s.Table, Target: s.Target, File: fileName(s.Table, number), Format: "jsonl", State: Exporting,
		PrimaryKey: keysOf(s.Key), TimeToLive: s.TimeToLive, MaxVersions: s.MaxVersions, number: number}
	if err := m.write(f.Dir); err != nil {
		return nil, err
	}
	var written *digest
	err := atomicfile.Write(filepath.Join(f.Dir, m.File), atomicfile.Options{Perm: 0o600}, func(file io.Writer) error {
		written = newDigest()
		return written.take(io.MultiWriter(file, written), s.Rows)
	})
	if err != nil {
		return nil, fmt.Errorf("export table %s: %w", s.Table, err)
	}
	m.State, m.Rows, m.Bytes, m.SHA256, m.ExportedAt = Exported, written.rows, written.bytes, written.sum(), now()
	m.Binary = written.binary
	return m, m.write(f.Dir)
}

func now() *time.Time {
	t := time.Now().UTC().Truncate(time.Second)
	return &t
}

// Verify reads the file of an export back and the table again. The error is a DamagedError if the file is not what was
// written, a ChangedError if the table is not what the file has.
func (f *Folder) Verify(m *Manifest, s *Subject) error {
	if err := f.check(m); err != nil {
		return err
	}
	present := newDigest()
	if err := present.take(present, s.Rows); err != nil {
		return fmt.Errorf("compare table %s with its export: %w", s.Table, err)
	}
	if present.rows != m.Rows || present.sum() != m.SHA256 {
		return &ChangedError{s.Table, filepath.Join(f.Dir, m.File), m.Rows, present.rows}
	}
	m.State, m.VerifiedAt, m.DroppedAt = Verified, now(), nil
	m.Binary = present.binary
	return m.write(f.Dir)
}

// check reads an export's file.
func (f *Folder) check(m *Manifest) error {
	name := filepath.Join(f.Dir, m.File)
	file, err := os.Open(name)
	if err != nil {
		return &DamagedError{name, fmt.Sprintf("it cannot be opened: %v", err)}
	}
	defer file.Close()
	found := newDigest()
	if _, err := io.Copy(found, bufio.NewReaderSize(file, 1<<20)); err != nil {
		return &DamagedError{name, fmt.Sprintf("it cannot be read: %v", err)}
	}
	if found.lines != m.Rows || found.bytes != m.Bytes || found.sum() != m.SHA256 {
		return &DamagedError{name, fmt.Sprintf("it has %d rows in %d bytes with sha256 %s, its manifest says %d in %d with %s",
			found.lines, found.bytes, found.sum(), m.Rows, m.Bytes, m.SHA256)}
	}
	return nil
}

// MarkDropped notes that the table of a verified export is about to be dropped. It comes before that: a table of the same
// name that is there later is then known to be another one, unless it is found to be the same.
func (f *Folder) MarkDropped(m *Manifest) error {
	m.State, m.DroppedAt = Dropped, now()
	return m.write(f.Dir)
}

// digest counts and sums up the text that is written to it.
type digest struct {
	hash  hash.Hash
	bytes int64
	lines int64
	rows  int64 // of take

	binary []string // columns with binary values, of take; sorted
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

func (d *digest) Write(text []byte) (int, error) {
	d.bytes += int64(len(text))
	d.lines += int64(bytes.Count(text, []byte{'\n'}))
	return d.hash.Write(text)
}

func (d *digest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

func (d *digest) noteBinary(r *scan.Row) {
	note := func(name string, value any) {
		if _, ok := value.([]byte); !ok {
			return
		}
		if i, known := slices.BinarySearch(d.binary, name); !known {
			d.binary = slices.Insert(d.binary, i, name)
		}
	}
	for _, k := range r.PrimaryKey.PrimaryKeys {
		note(k.ColumnName, k.Value)
	}
	for _, c := range r.Columns {
		note(c.ColumnName, c.Value)
	}
}

// take writes all rows as JSON lines, attributes by name: two readings of one table are then the same text.
func (d *digest) take(w io.Writer, rows func(func(*scan.Row) error) error) error {
	lines := scan.NewJSONL(w)
	err := rows(func(r *scan.Row) error {
		d.rows++
		d.noteBinary(r)
		sorted := *r
		sorted.Columns = slices.SortedFunc(slices.Values(r.Columns), func(a, b *tablestore.AttributeColumn) int {
			return strings.Compare(a.ColumnName, b.ColumnName)
		})
		return lines.Write(&sorted)
	})
	if err != nil {
		return err
	}
	return lines.Flush()
}
