package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

// Format and version in an archive's manifest.
const (
	Format = "tsimport-archive"
	// Version is the format's version; readers refuse any other. Version 1 predates the first release.
	Version = 2
)

// ManifestName is the name of an archive's manifest.
const ManifestName = "manifest.json"

// partName matches the names of parts and, in practice, no other file's.
var partName = regexp.MustCompile(`^archive-\d{5,}-\d{5,}\.jsonl\.zst$`)

// Manifest describes an archive. It has many fields because it mirrors the JSON document.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`

	Table   string            `json:"table"`
	Target  string            `json:"target"`        // address of the table
	Created int64             `json:"creation_time"` // creation of the table, in microseconds since 1970; 0 if unknown
	Key     []table.KeyColumn `json:"primary_key"`
	Options table.Definition  `json:"options"`
	Defined []Column          `json:"defined_columns"`
	Indexes []string          `json:"indexes"`
	// IndexesAre holds the definition of each index in Indexes.
	IndexesAre []table.Index `json:"index_definitions,omitempty"`
	Holds      Selection     `json:"holds"`
	// Columns names all attributes of the rows; nil if there are more than maxColumns or they are unknown.
	Columns []string `json:"columns"`

	Began    time.Time `json:"scan_began"`
	Ended    time.Time `json:"scan_ended"`
	Rows     int64     `json:"rows"`
	Cells    int64     `json:"cells"`
	Bytes    int64     `json:"bytes"`         // total size of all parts
	Versions int       `json:"most_versions"` // largest number of versions in any cell
	Smallest *int64    `json:"smallest_timestamp"`
	Largest  *int64    `json:"largest_timestamp"`
	Ranges   []Range   `json:"ranges"`
	Parts    []Part    `json:"parts"`

	// SHA256 is the checksum of the manifest's text with 64 zeros in this field, which comes last.
	SHA256 string `json:"sha256"`

	files Files
}

type Files interface {
	// Path returns the address of the file, or of the folder if name is "".
	Path(name string) string
	// Size returns fs.ErrNotExist if the file does not exist.
	Size(name string) (int64, error)
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

type localFiles string

func (l localFiles) Path(name string) string { return filepath.Join(string(l), name) }

func (l localFiles) Size(name string) (int64, error) {
	info, err := os.Stat(l.Path(name))
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, errNoFile
	}
	return info.Size(), nil
}

func (l localFiles) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(l.Path(name))
}

var errNoFile = errors.New("it is not a file")

// Column is a predefined attribute column.
type Column struct {
	Name string     `json:"name"`
	Type table.Type `json:"type"`
}

// Selection is the part of a table that an archive contains. The zero value is the whole table.
type Selection struct {
	From     string   `json:"from_key,omitempty"`
	To       string   `json:"to_key,omitempty"`
	Columns  []string `json:"columns,omitzero"` // nil for all; empty for none
	Filter   string   `json:"filter,omitempty"`
	Where    string   `json:"where,omitempty"`
	Keys     string   `json:"keys,omitempty"`     // checksum of the selected keys; "" for all rows
	Versions int      `json:"versions,omitempty"` // versions kept of each cell; 0 for all
}

// Facts returns the facts that must be the same when an export of the selection is resumed.
func (s *Selection) Facts() []progress.Fact {
	columns := "all"
	if s.Columns != nil {
		columns = fmt.Sprintf("%q", s.Columns)
	}
	return []progress.Fact{
		{Name: "--from-key", Value: s.From}, {Name: "--to-key", Value: s.To}, {Name: "--columns", Value: columns},
		{Name: "--filter", Value: s.Filter}, {Name: "--where", Value: s.Where}, {Name: "the keys", Value: s.Keys},
		{Name: "--versions", Value: strconv.Itoa(s.Versions)},
	}
}

// Range is a key range that was scanned separately. Its parts are in key order.
type Range struct {
	Name  string          `json:"name"`
	First json.RawMessage `json:"first_key,omitempty"` // key of the first row, as in PK; absent if there is no row
	Last  json.RawMessage `json:"last_key,omitempty"`
	Rows  int64           `json:"rows"`
	Bytes int64           `json:"bytes"`
}

// Part is a file of rows.
type Part struct {
	Name     string          `json:"name"`
	Range    int             `json:"range"` // index of its range
	Rows     int64           `json:"rows"`
	Cells    int64           `json:"cells"`
	Bytes    int64           `json:"bytes"` // size of the file, compressed
	Text     int64           `json:"text_bytes"`
	SHA256   string          `json:"sha256"` // checksum of the file
	Versions int             `json:"most_versions"`
	Smallest *int64          `json:"smallest_timestamp,omitempty"`
	Largest  *int64          `json:"largest_timestamp,omitempty"`
	First    json.RawMessage `json:"first_key,omitempty"`
	Last     json.RawMessage `json:"last_key,omitempty"`
	Columns  []string        `json:"columns,omitempty"` // names of its attribute columns; absent in the manifest
	Width    int             `json:"width,omitempty"`   // in a lake: the file has this many of the first columns
}

// maxColumns is the largest number of column names that are recorded.
const maxColumns = 1024

// DefinedTypes returns the types of predefined columns by name.
func (m *Manifest) DefinedTypes() map[string]table.Type {
	types := map[string]table.Type{}
	for _, c := range m.Defined {
		types[c.Name] = c.Type
	}
	return types
}

func (m *Manifest) Dir() string { return m.files.Path("") }

func (m *Manifest) Path(p *Part) string { return m.files.Path(p.Name) }

func (m *Manifest) Open(ctx context.Context, p *Part) (io.ReadCloser, error) {
	return m.files.Open(ctx, p.Name)
}

var noSum = strings.Repeat("0", 2*sha256.Size)

func (m *Manifest) text() ([]byte, error) {
	m.SHA256 = noSum
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	sum := sha256.Sum256(text)
	m.SHA256 = hex.EncodeToString(sum[:])
	copy(text[bytes.LastIndex(text, []byte(noSum)):], m.SHA256)
	return text, nil
}

// DamagedError means that an archive is missing or unfinished, or differs from what its writer recorded.
type DamagedError struct{ Path, Why string }

func (e *DamagedError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Why) }

// Is reports whether path is a manifest, or a folder with a manifest, parts or a journal of an archive.
func Is(path string) bool {
	info, err := os.Stat(path)
	if err != nil || Lake.in(context.Background(), localFiles(path)) {
		return false
	}
	if !info.IsDir() {
		return filepath.Base(path) == ManifestName && HasFormat(context.Background(), localFiles(filepath.Dir(path)))
	}
	if HasFormat(context.Background(), localFiles(path)) {
		return true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == journalName || IsPart(e.Name()) })
}

// IsPart reports whether name is the name of an archive's part.
func IsPart(name string) bool { return partName.MatchString(name) }

// HasFormat reports whether there is a manifest that begins like an archive's.
func HasFormat(ctx context.Context, files Files) bool { return Exact.in(ctx, files) }

func (k *Kind) in(ctx context.Context, files Files) bool {
	f, err := files.Open(ctx, k.manifest)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 256)
	n, _ := io.ReadFull(f, start)
	return bytes.Contains(start[:n], []byte(`"`+k.format+`"`))
}

// maxManifest is larger than any archive's manifest.
const maxManifest = 1 << 30

// Read reads and checks an archive's manifest, given the archive's folder or the manifest itself. It reads no parts.
func Read(path string) (*Manifest, error) {
	dir := path
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && filepath.Base(path) != ManifestName:
		return nil, &DamagedError{path, "there is no such folder"}
	case err != nil || !info.IsDir():
		dir = filepath.Dir(path)
	}
	m, err := ReadFrom(context.Background(), localFiles(dir))
	if damaged := new(DamagedError); errors.As(err, &damaged) && damaged.Path == dir {
		if _, err := os.Stat(filepath.Join(dir, journalName)); err == nil {
			damaged.Why = "the export to it is not finished; give its command again"
		}
	}
	return m, err
}

// ReadFrom is like Read, but reads from any Files.
func ReadFrom(ctx context.Context, files Files) (*Manifest, error) {
	file := files.Path(ManifestName)
	size, err := files.Size(ManifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamagedError{files.Path(""), "it has no " + ManifestName +
			": it is not an archive, or only a part of one, or the export to it is not finished"}
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if size > maxManifest {
		return nil, &DamagedError{file, "it is too large to be a manifest"}
	}
	in, err := files.Open(ctx, ManifestName)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	text, err := io.ReadAll(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
		SHA256  string `json:"sha256"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, &DamagedError{file, fmt.Sprintf("it was changed or damaged: %v", err)}
	}
	switch {
	case head.Format != Format:
		return nil, &DamagedError{file, "it is not the manifest of an archive"}
	case head.Version != Version:
		return nil,
			&DamagedError{file, fmt.Sprintf("it has version %d of the format, and this program reads version %d; use the "+
				"tsimport version that wrote it", head.Version, Version)}
	}
	at := -1
	if len(head.SHA256) == len(noSum) {
		at = bytes.LastIndex(text, []byte(head.SHA256))
	}
	if at < 0 {
		return nil, &DamagedError{file, "it was changed or damaged: it has no sha256 of its own"}
	}
	plain := bytes.Clone(text)
	copy(plain[at:], noSum)
	if sum := sha256.Sum256(plain); hex.EncodeToString(sum[:]) != head.SHA256 {
		return nil, &DamagedError{file, "it was changed or damaged: its sha256 does not match its text"}
	}
	m := &Manifest{files: files}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, &DamagedError{file, fmt.Sprintf("it was changed or damaged: %v", err)}
	}
	for _, p := range m.Parts {
		if !partName.MatchString(p.Name) {
			return nil, &DamagedError{file, fmt.Sprintf("it lists a part with the invalid name %q", p.Name)}
		}
	}
	for _, c := range m.Key {
		if !c.Type.KeyType() {
			return nil, &DamagedError{file, fmt.Sprintf("the key column %s has the type %v", c.Name, c.Type)}
		}
	}
	if len(m.Parts) == 0 || len(m.Key) == 0 {
		return nil, &DamagedError{file, "it names no parts or no key"}
	}
	return m, nil
}

// CheckSizes compares the sizes of all parts with the manifest. It returns a DamagedError for the first mismatch.
func (m *Manifest) CheckSizes(ctx context.Context) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		size, err := m.files.Size(p.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &DamagedError{m.Path(p), "this part of the archive is missing"}
		case errors.Is(err, errNoFile):
			return &DamagedError{m.Path(p), "this part of the archive is not a file"}
		case err != nil:
			return fmt.Errorf("check archive: %w", err)
		case size != p.Bytes:
			return m.isNot(ctx, p, fmt.Sprintf("it has %d bytes, and the manifest says %d", size, p.Bytes))
		}
	}
	return nil
}

// Check compares all parts with the manifest: sizes, then checksums. It returns a DamagedError for a mismatch.
func (m *Manifest) Check(ctx context.Context) error {
	if err := m.CheckSizes(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range m.Parts {
		p := &m.Parts[i]
		group.Go(func() error {
			sum, err := m.sumOf(ctx, p)
			if err != nil {
				return fmt.Errorf("check archive: %w", err)
			}
			if sum != p.SHA256 {
				return m.isNot(ctx, p, "its sha256 does not match the manifest")
			}
			return nil
		})
	}
	return group.Wait()
}

// isNot returns the error for a part that differs. If p has the content of another part, the error names that part.
func (m *Manifest) isNot(ctx context.Context, p *Part, why string) error {
	if sum, err := m.sumOf(ctx, p); err == nil {
		for i := range m.Parts {
			if other := &m.Parts[i]; other != p && other.SHA256 == sum {
				return &DamagedError{m.Path(p), fmt.Sprintf("this part was swapped: it is %s under another name", other.Name)}
			}
		}
	}
	return &DamagedError{m.Path(p), "this part of the archive was changed or damaged: " + why}
}

func (m *Manifest) sumOf(ctx context.Context, p *Part) (string, error) {
	f, err := m.Open(ctx, p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for err == nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		_, err = io.CopyN(h, f, 4<<20)
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
