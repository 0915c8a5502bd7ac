package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tsimport/internal/atomicfile"
	"tsimport/internal/table"
)

// State is how far an export has come.
type State string

// The states.
const (
	Exporting State = "exporting" // begun; its file is not there or not whole
	Exported  State = "exported"  // its file is whole, and nothing is compared yet
	Verified  State = "verified"  // the file was read back, and the table was as it is in the file
	Dropped   State = "dropped"   // verified, and the table was to be dropped then
)

// Manifest is what is known of an export, as it stands in the file beside it.
type Manifest struct {
	Table       string     `json:"table"`
	Target      string     `json:"target"` // where the table is, so that tables of one name do not mix
	File        string     `json:"file"`   // in the manifest's folder
	Format      string     `json:"format"`
	State       State      `json:"state"`
	Rows        int64      `json:"rows"`
	Bytes       int64      `json:"bytes"`
	SHA256      string     `json:"sha256"` // of the file
	PrimaryKey  []Key      `json:"primary_key"`
	TimeToLive  int        `json:"ttl"` // of the table, in seconds
	MaxVersions int        `json:"max_versions"`
	Binary      []string   `json:"binary_columns,omitempty"` // with binary values, which a load takes only with --type NAME=binary
	ExportedAt  *time.Time `json:"exported_at,omitempty"`
	VerifiedAt  *time.Time `json:"verified_at,omitempty"`
	DroppedAt   *time.Time `json:"dropped_at,omitempty"`

	number int // of the table's exports, from 1
}

// Key is a primary-key column.
type Key struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Complete reports whether the export was verified.
func (m *Manifest) Complete() bool { return m.State == Verified || m.State == Dropped }

// fileName and manifestName are the names of a table's n-th export, from 1.
func fileName(tableName string, n int) string { return stem(tableName, n) + ".jsonl" }

func manifestName(tableName string, n int) string { return stem(tableName, n) + ".manifest.json" }

// stem has a character that no table's name has, so that the second export of a table is not the first of another.
func stem(tableName string, n int) string {
	if n == 1 {
		return tableName
	}
	return fmt.Sprintf("%s-%d", tableName, n)
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
		ours := m != nil && m.Table == tableName && m.Target == target && m.File == fileName(tableName, n)
		switch {
		case ours && m.Complete():
			last, m.number = m, n
		case ours:
			m.number = n
			return last, place{n, m}, nil
		case m == nil:
			free, err := isFree(dir, manifestName(tableName, n), fileName(tableName, n))
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
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m := new(Manifest)
	if json.Unmarshal(text, m) != nil {
		return nil, nil
	}
	return m, nil
}

// Latest returns the last complete export of a table, nil if there is none. It changes nothing.
func Latest(dir, target, tableName string) (*Manifest, error) {
	last, _, err := places(dir, target, tableName)
	return last, err
}

// Whole reports whether the export's file is there with the length that it should have, without reading it.
func (m *Manifest) Whole(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, m.File))
	return err == nil && info.Mode().IsRegular() && info.Size() == m.Bytes
}

// write puts the manifest in its place.
func (m *Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(dir, manifestName(m.Table, m.number)), atomicfile.Options{Perm: 0o600}, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write manifest of table %s: %w", m.Table, err)
	}
	return nil
}

func keysOf(columns []table.KeyColumn) []Key {
	keys := make([]Key, 0, len(columns))
	for _, c := range columns {
		keys = append(keys, Key{c.Name, c.Type.String()})
	}
	return keys
}
