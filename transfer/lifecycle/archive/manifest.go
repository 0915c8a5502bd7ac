package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
)

type State string

const (
	Archiving State = "archiving" // begun; the next run continues the export or, if it is complete, compares it
	Verified  State = "verified"  // the archive has been read back and equals the table
	Dropped   State = "dropped"   // verified, and the table was about to be dropped
)

// Manifest describes an export. Its file is beside the archive.
type Manifest struct {
	Table      string     `json:"table"`
	Target     string     `json:"target"` // place of the table; distinguishes tables of the same name
	File       string     `json:"file"`   // the archive beside the manifest: a folder or an object prefix
	Format     string     `json:"format"`
	State      State      `json:"state"`
	Rows       int64      `json:"rows"`
	Bytes      int64      `json:"bytes"`  // size of the archive's parts
	SHA256     string     `json:"sha256"` // hash of the rows as lines
	ExportedAt *time.Time `json:"exported_at,omitempty"`
	VerifiedAt *time.Time `json:"verified_at,omitempty"`
	DroppedAt  *time.Time `json:"dropped_at,omitempty"`

	number int // number of the export among the table's exports, from 1
}

func (m *Manifest) Complete() bool { return m.State == Verified || m.State == Dropped }

// manifestName returns the file name of the manifest of a table's nth export, from 1.
func manifestName(tableName string, n int) string {
	return atomicfile.Beside(stem(tableName, n), ".manifest.json")
}

// stem returns the folder name of a table's nth export, from 1. Above 1, it has a character that table names lack.
func stem(tableName string, n int) string {
	if n == 1 {
		return tableName
	}
	return atomicfile.Beside(tableName, fmt.Sprintf("-%d", n))
}

type place struct {
	number int
	held   *Manifest // the table's manifest at the place, in any state; nil if the place is free
}

// places returns a table's last complete export, or nil, and the next place to use, whose number is at least from. It
// skips foreign files.
func (p *Place) places(ctx context.Context, target, tableName string, from int) (last *Manifest, next place,
	err error) {
	for n := 1; ; n++ {
		m, err := p.read(ctx, manifestName(tableName, n))
		if err != nil {
			return nil, place{}, err
		}
		ours := m != nil && m.Table == tableName && m.Target == target && m.File == stem(tableName, n)
		switch {
		case ours && m.Complete():
			last, m.number = m, n
		case ours && n >= from && next.number == 0:
			next, m.number = place{n, m}, n
		case m == nil:
			free, err := p.isFree(ctx, manifestName(tableName, n), stem(tableName, n))
			if free && next.number == 0 {
				next.number = n
			}
			if free || err != nil {
				return last, next, err
			}
		}
	}
}

// isFree reports whether a place is unused: a folder has not even a link there, a store neither manifest nor parts.
func (p *Place) isFree(ctx context.Context, manifest, archive string) (bool, error) {
	for _, name := range []string{manifest, archive} {
		if p.dir == "" {
			names, err := p.store.List(ctx, name)
			if err != nil {
				return false, fmt.Errorf("read archive: %w", err)
			}
			if slices.ContainsFunc(names, func(n string) bool { return n == name || strings.HasPrefix(n, name+"/") }) {
				return false, nil
			}
			continue
		}
		_, err := os.Lstat(filepath.Join(p.dir, name))
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read archive: %w", err)
		}
	}
	return true, nil
}

// manifestVersion is the version of the manifests that this program writes.
const manifestVersion = 1

// read reads a manifest, or returns nil if the file is missing or foreign. A manifest of another version is an error.
func (p *Place) read(ctx context.Context, name string) (*Manifest, error) {
	text, err := p.store.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m := new(Manifest)
	if json.Unmarshal(text, m) != nil || m.Table == "" || m.State == "" {
		return nil, nil
	}
	return m, progress.Decode(name, text, manifestVersion, m, "name another place for archives")
}

// Latest returns the last complete export of a table, or nil if there is none. It changes nothing.
func (p *Place) Latest(ctx context.Context, target, tableName string) (*Manifest, error) {
	last, _, err := p.places(ctx, target, tableName, 1)
	return last, err
}

// Path returns the place of an export's archive.
func (p *Place) Path(m *Manifest) string {
	if p.dir != "" {
		return filepath.Join(p.dir, m.File)
	}
	return jobdir.Below(p.store, m.File).String()
}

func (p *Place) put(ctx context.Context, m *Manifest) error {
	text, err := progress.Encode(manifestVersion, m)
	if err == nil {
		err = p.held()
	}
	if err == nil {
		err = p.store.Put(ctx, manifestName(m.Table, m.number), text)
	}
	if err != nil {
		return fmt.Errorf("write manifest of table %s: %w", m.Table, err)
	}
	return nil
}
