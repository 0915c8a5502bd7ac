package runfolder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Reopen goes on in the folder of a run that was not finished. Lengths are what counts of its files of rejects, as Lengths
// returned them: they are cut back to that, and those that it does not name are removed.
func Reopen(path string, headers []Header, lengths map[string]int64) (*Folder, error) {
	f := &Folder{Path: path, headers: headers, lengths: maps.Clone(lengths)}
	if f.lengths == nil {
		f.lengths = map[string]int64{}
	}
	f.rejects = make([]*os.File, len(headers))
	f.raw = make([]*bufio.Writer, len(headers))
	if err := f.removeLater(); err != nil {
		return nil, fmt.Errorf("go on in run folder %s: %w", path, err)
	}
	for i := range headers {
		file, err := f.cutBack(f.rejectsPath(i))
		if err != nil {
			return nil, err
		}
		if file != nil {
			f.rejects[i], f.raw[i] = file, bufio.NewWriter(file)
		}
	}
	file, err := f.cutBack(filepath.Join(path, ReasonsFile))
	if err != nil {
		return nil, err
	}
	if file != nil {
		f.reasons, f.lines = file, bufio.NewWriter(file)
	}
	return f, f.WriteSummary(map[string]string{"state": "running"})
}

// removeLater removes files of rejects that were made after the lengths were taken.
func (f *Folder) removeLater() error {
	return filepath.WalkDir(f.Path, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != f.Path && !strings.Contains(e.Name(), "="):
			return fs.SkipDir // of earlier runs
		case e.IsDir() || !strings.HasPrefix(e.Name(), rejectsPrefix):
			return nil
		}
		if _, known := f.lengths[f.below(name)]; known {
			return nil
		}
		return os.Remove(name)
	})
}

// cutBack opens a file of rejects for what is to come behind what counts of it; nil if there is none.
func (f *Folder) cutBack(name string) (*os.File, error) {
	length, known := f.lengths[f.below(name)]
	if !known {
		return nil, nil
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("go on with rejected rows: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Size() < length {
		err = fmt.Errorf("%s has %d bytes, %d were written; put it back, or start over with --fresh", name, info.Size(), length)
	}
	if err == nil {
		err = file.Truncate(length)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return nil, fmt.Errorf("go on with rejected rows: %w", errors.Join(err, file.Close()))
	}
	return file, nil
}

// below is a file's name below the folder.
func (f *Folder) below(name string) string {
	rel, err := filepath.Rel(f.Path, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// Lengths returns the bytes of each file of rejects, by its name below the folder. Flush has been called.
func (f *Folder) Lengths() map[string]int64 { return maps.Clone(f.lengths) }

// Files returns the open files of rejects: what Lengths counts is safe from a crash once they are synced.
func (f *Folder) Files() (all []*os.File) {
	for _, file := range append([]*os.File{f.reasons}, f.rejects...) {
		if file != nil {
			all = append(all, file)
		}
	}
	return all
}
