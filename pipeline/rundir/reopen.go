package rundir

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Kept holds the valid parts of a run's reject files, by their names below the folder.
type Kept struct {
	Lengths map[string]int64
	Sums    map[string]uint32 // checksums of these parts; nil if unknown
}

// Reopen opens the folder of an unfinished run and truncates its reject files to their valid parts. A file that the
// user has changed, or that has no valid part, is kept under another name. Files with other names belong to the user.
func Reopen(path string, headers []Header, kept Kept) (*Folder, error) {
	f := newFolder(path, headers)
	maps.Copy(f.lengths, kept.Lengths)
	if err := f.setAside(kept.Sums); err != nil {
		return nil, fmt.Errorf("resume run folder %s: %w", path, err)
	}
	for i := range f.files {
		file, err := f.cutBack(f.rejectsPath(i))
		if err != nil {
			return nil, err
		}
		if file != nil {
			f.files[i] = f.opened(i, file)
		}
	}
	return f, WriteSummary(path, map[string]string{"state": "running"})
}

// setAside renames reject files that are not as the run has written them.
func (f *Folder) setAside(sums map[string]uint32) error {
	var all []string
	err := filepath.WalkDir(f.Path, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != f.Path && !strings.Contains(e.Name(), "="):
			return fs.SkipDir // files of earlier runs
		case e.IsDir():
		case isEdited(e.Name()):
			f.edited = append(f.edited, name)
		case isRejectsFile(e.Name()):
			all = append(all, name)
		}
		return nil
	})
	for _, name := range all {
		if err == nil {
			err = f.setAsideOne(name, sums)
		}
	}
	return err
}

func (f *Folder) setAsideOne(name string, sums map[string]uint32) error {
	below := f.below(name)
	length, known := f.lengths[below]
	if !known {
		_, err := moveAside(name, laterMark)
		return err
	}
	want, summed := sums[below]
	if !summed {
		return nil
	}
	got, err := sumOf(name, length)
	if errors.Is(err, io.EOF) {
		return nil // cutBack refuses a file that is too short
	}
	if err != nil || got == want {
		f.sums[below] = got
		return err
	}
	if filepath.Base(name) == ReasonsFile {
		return fmt.Errorf("%s has changed since the run wrote it; restore it, or start over with --fresh", name)
	}
	aside, err := moveAside(name, editedMark)
	f.edited = append(f.edited, aside)
	delete(f.lengths, below)
	return err
}

// sumOf returns the checksum of a file's first length bytes. The error for a shorter file is io.EOF.
func sumOf(name string, length int64) (uint32, error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	sum := crc32.New(castagnoli)
	_, err = io.CopyN(sum, file, length)
	return sum.Sum32(), err
}

// The marks in the names of files that are moved aside, because the user has changed them or no part of them is valid.
const (
	editedMark = "edited"
	laterMark  = "later"
)

var editedNames = regexp.MustCompile(`^rejects(-[1-9][0-9]*)?\.edited-[1-9][0-9]*\.(csv|ndjson)$`)

func isEdited(name string) bool { return editedNames.MatchString(name) }

// wasEdited reports whether a reject file was moved aside because the user has changed it.
func (f *Folder) wasEdited(name string) bool {
	begin := strings.TrimSuffix(name, filepath.Ext(name)) + "." + editedMark + "-"
	return slices.ContainsFunc(f.edited, func(aside string) bool { return strings.HasPrefix(aside, begin) })
}

// moveAside renames a file: rejects.csv becomes rejects.edited-1.csv, or the first such name that is not used.
func moveAside(name, mark string) (aside string, err error) {
	kind := filepath.Ext(name)
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s.%s-%d%s", strings.TrimSuffix(name, kind), mark, n, kind)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(name, aside)
		}
	}
}

// cutBack opens a reject file and truncates it to its valid part. It returns nil if the file has none.
func (f *Folder) cutBack(name string) (*os.File, error) {
	length, known := f.lengths[f.below(name)]
	if !known {
		return nil, nil
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) && f.wasEdited(name) {
		delete(f.lengths, f.below(name)) // a killed attempt has moved it aside
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("resume rejected rows: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Size() < length {
		err = fmt.Errorf("%s has %d bytes, not the %d written; restore it or give --fresh", name, info.Size(), length)
	}
	if err == nil {
		err = file.Truncate(length)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return nil, fmt.Errorf("resume rejected rows: %w", errors.Join(err, file.Close()))
	}
	return file, nil
}

func (f *Folder) below(name string) string {
	rel, err := filepath.Rel(f.Path, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// Kept returns the valid parts of the reject files. Flush must have been called.
func (f *Folder) Kept() Kept { return Kept{maps.Clone(f.lengths), maps.Clone(f.sums)} }

// Files returns the open reject files. Once they are synced, the parts that Kept returns survive a crash.
func (f *Folder) Files() (all []*os.File) {
	for _, file := range f.files {
		if file != nil && file.File != nil {
			all = append(all, file.File)
		}
	}
	return all
}
