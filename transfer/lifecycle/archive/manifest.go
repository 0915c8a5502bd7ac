package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
	exact "example.com/tsimport/reader/archivefile"
)

// State is how far an export has come.
type State string

// The states.
const (
	Exporting State = "exporting" // begun; its archive is not there or not whole
	Exported  State = "exported"  // its archive is whole, and nothing is compared yet
	Verified  State = "verified"  // the archive was read back, and the table was as it is there
	Dropped   State = "dropped"   // verified, and the table was to be dropped then
)

// Manifest is what is known of an export, as it stands in the file beside its archive.
type Manifest struct {
	Table      string     `json:"table"`
	Target     string     `json:"target"` // where the table is, so that tables of one name do not mix
	File       string     `json:"file"`   // the archive: a folder in the manifest's folder
	Format     string     `json:"format"`
	State      State      `json:"state"`
	Rows       int64      `json:"rows"`
	Bytes      int64      `json:"bytes"`  // of the archive's parts
	SHA256     string     `json:"sha256"` // of the lines of its rows
	ExportedAt *time.Time `json:"exported_at,omitempty"`
	VerifiedAt *time.Time `json:"verified_at,omitempty"`
	DroppedAt  *time.Time `json:"dropped_at,omitempty"`

	number int // of the table's exports, from 1
}

// Complete reports whether the export was verified.
func (m *Manifest) Complete() bool { return m.State == Verified || m.State == Dropped }

// manifestName is the file beside a table's n-th export, from 1.
func manifestName(tableName string, n int) string {
	return atomicfile.Beside(stem(tableName, n), ".manifest.json")
}

// stem is the folder of a table's n-th export, from 1. It has a character that no table's name has, so that the second export of a table is not the first of another.
func stem(tableName string, n int) string {
	if n == 1 {
		return tableName
	}
	return atomicfile.Beside(tableName, fmt.Sprintf("-%d", n))
}

// place is where one export of a table is, or can be.
type place struct {
	number int
	held   *Manifest // ours, regardless of its state; nil if the place is free
}

// places finds a table's exports in a folder: the last complete one, nil if there is none, and the place for the next.
// A file or manifest that is not ours, whoever made it, is left alone and passed by.
func places(dir, target, tableName string) (last *Manifest, next place, err error) {
	for n := 1; ; n++ {
		m, err := readManifest(filepath.Join(dir, manifestName(tableName, n)))
		if err != nil {
			return nil, place{}, err
		}
		ours := m != nil && m.Table == tableName && m.Target == target && m.File == stem(tableName, n)
		switch {
		case ours && m.Complete():
			last, m.number = m, n
		case ours:
			m.number = n
			return last, place{n, m}, nil
		case m == nil:
			free, err := isFree(dir, manifestName(tableName, n), stem(tableName, n))
			if free || err != nil {
				return last, place{number: n}, err
			}
		}
	}
}

func isFree(dir string, names ...string) (bool, error) {
	for _, name := range names {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read archive: %w", err)
		}
	}
	return true, nil
}

// readManifest returns nil if there is none, and for a file that is not a manifest: manifests are never half written.
func readManifest(file string) (*Manifest, error) {
	m := new(Manifest)
	err := progress.Read(file, 0, m, "remove it")
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*progress.UnfitError)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}

// Latest returns the last complete export of a table, nil if there is none. It changes nothing.
func Latest(dir, target, tableName string) (*Manifest, error) {
	last, _, err := places(dir, target, tableName)
	return last, err
}

// Whole reports whether the export's archive is there with the sizes that it should have, without reading its rows.
func (m *Manifest) Whole(dir string) bool {
	a, err := exact.Read(filepath.Join(dir, m.File))
	if err != nil || a.Rows != m.Rows || a.Bytes != m.Bytes {
		return false
	}
	for i := range a.Parts {
		info, err := os.Stat(a.Path(&a.Parts[i]))
		if err != nil || !info.Mode().IsRegular() || info.Size() != a.Parts[i].Bytes {
			return false
		}
	}
	return true
}

// write puts the manifest in its place.
func (m *Manifest) write(dir string) error {
	if err := progress.Write(filepath.Join(dir, manifestName(m.Table, m.number)), 0o600, m); err != nil {
		return fmt.Errorf("write manifest of table %s: %w", m.Table, err)
	}
	return nil
}
