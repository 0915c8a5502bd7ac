package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"example.com/tsimport/internal/atomicfile"
)

// ArchiveFile is the name of the file that lists the files of archived rows that a run has created.
const ArchiveFile = "archived.jsonl"

// Archive keeps rows that are too old to be loaded, in a file for each table, in the user's folder. Each run creates
// its own files, after listing them in the run folder, and leaves other files alone. It is not safe for concurrent use.
type Archive struct {
	run     string
	headers []Header
	list    *os.File
	files   map[archiveKey]*Journal
}

type archiveKey struct {
	Dir    string `json:"dir"`
	Table  string `json:"table"`
	Header int    `json:"header"`
}

// archiveEntry is one line of ArchiveFile.
type archiveEntry struct {
	archiveKey
	File string `json:"file"`
}

// OpenArchive opens the archive of the run in a folder. It truncates a resumed run's files to lengths, or removes them.
func OpenArchive(run string, headers []Header, lengths map[string]int64) (*Archive, error) {
	a := &Archive{run: run, headers: headers, files: map[archiveKey]*Journal{}}
	entries, err := a.listed()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var err error
		if lengths[e.File] > 0 {
			a.files[e.archiveKey], err = OpenJournal(e.File, lengths[e.File])
		} else if err = os.Remove(e.File); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			delete(a.files, e.archiveKey)
			return nil, errors.Join(fmt.Errorf("resume archive: %w", err), a.Close())
		}
	}
	return a, nil
}

func (a *Archive) listed() (entries []archiveEntry, err error) {
	text, err := os.ReadFile(filepath.Join(a.run, ArchiveFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("resume archive: %w", err)
	}
	for line := range bytes.Lines(text) {
		var e archiveEntry
		if json.Unmarshal(line, &e) != nil {
			break // a crash cut it short before its file was created
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Add appends a record to the table's file in dir for the input header with the given index.
func (a *Archive) Add(dir, table string, header int, record []byte) error {
	key := archiveKey{dir, table, header}
	j := a.files[key]
	if j == nil {
		var err error
		if j, err = a.make(key); err != nil {
			return fmt.Errorf("archive rows of table %s: %w", table, err)
		}
		a.files[key] = j
		if err := a.append(j, header, a.headers[header].Text); err != nil {
			return err
		}
	}
	return a.append(j, header, record)
}

func (a *Archive) append(j *Journal, header int, text []byte) error {
	if err := j.Append(text); err != nil {
		return err
	}
	if end := a.headers[header].missingEnd(text); end != "" {
		return j.Append([]byte(end))
	}
	return nil
}

// make creates the file of a table under the first free name.
func (a *Archive) make(key archiveKey) (*Journal, error) {
	if err := os.MkdirAll(key.Dir, 0o700); err != nil {
		return nil, err
	}
	ending := ".csv"
	if a.headers[key.Header].Kind == ".ndjson" {
		ending = ".jsonl"
	}
	for n := 1; ; n++ {
		name := atomicfile.Beside(filepath.Join(key.Dir, key.Table), ending)
		if n > 1 {
			name = atomicfile.Beside(filepath.Join(key.Dir, key.Table), fmt.Sprintf("-%d%s", n, ending))
		}
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		if err := a.enlist(archiveEntry{key, name}); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s: another process is creating it; load again later", name)
		}
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		return OpenJournal(name, 0)
	}
}

// enlist lists a file that is about to be created, and syncs the list.
func (a *Archive) enlist(e archiveEntry) (err error) {
	if a.list == nil {
		a.list, err = os.OpenFile(filepath.Join(a.run, ArchiveFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = a.list.Write(append(line, '\n'))
	}
	return errors.Join(err, a.list.Sync())
}

// Flush writes data buffered by Add.
func (a *Archive) Flush() error {
	var err error
	for _, j := range a.files {
		err = errors.Join(err, j.Flush())
	}
	return err
}

// Lengths returns the lengths of the files in bytes, by path.
func (a *Archive) Lengths() map[string]int64 {
	lengths := map[string]int64{}
	for _, j := range a.files {
		lengths[j.Path()] = j.Length()
	}
	return lengths
}

// Open returns the open files. They must be synced before their lengths are relied on.
func (a *Archive) Open() (files []*os.File) {
	for _, j := range a.files {
		files = append(files, j.File())
	}
	return files
}

// Paths returns the existing files in order.
func (a *Archive) Paths() []string { return slices.Sorted(maps.Keys(a.Lengths())) }

func (a *Archive) Close() error {
	var err error
	for _, j := range a.files {
		err = errors.Join(err, j.Close())
	}
	if a.list != nil {
		err = errors.Join(err, a.list.Close())
	}
	return err
}
