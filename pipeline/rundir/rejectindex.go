package rundir

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"example.com/tsimport/internal/atomicfile"
)

// RejectIndexFile is the journal of the places of rejected records, in inputs read out of order and in reject files.
const RejectIndexFile = "rejects.index"

// rejectKept is the journal's entry for a rejected record: its place in the input, and its length and its reason's.
type rejectKept struct {
	Source, Header uint32
	Record         uint64
	Raw, Reason    uint32
}

// rejectEntry is a rejected record, with the places of the record and its reason in their files.
type rejectEntry struct {
	rejectKept
	at, reasonAt int64
}

const entryBytes = 24

// maxSorted limits how many rejected records are sorted: more would not fit in memory.
const maxSorted = 4 << 20

// Index makes the folder keep a journal of records rejected from now on, by source ordinal. open opens it if j is nil.
func (f *Folder) Index(j *Journal, open func() (*Journal, error), ordinal map[string]int) {
	f.index, f.openIndex, f.ordinal = j, open, ordinal
}

func (f *Folder) indexOne(header int, source string, record int64, raw, reason int) error {
	switch {
	case f.index != nil:
	case f.openIndex == nil:
		return nil
	default:
		var err error
		if f.index, err = f.openIndex(); err != nil {
			return err
		}
	}
	kept := rejectKept{uint32(f.ordinal[source]), uint32(header), uint64(record), uint32(raw), uint32(reason)}
	b, err := binary.Append(nil, binary.LittleEndian, kept)
	return errors.Join(err, f.index.Append(b))
}

// SortRejects sorts the rejects and reasons in input order, and reports whether that changed anything. The run must
// have ended, and the folder and journal must be closed. If the user has edited files, it changes nothing.
func (f *Folder) SortRejects() (sorted bool, err error) {
	name := filepath.Join(f.Path, RejectIndexFile)
	entries, err := readIndex(name)
	if err == nil && len(entries) > 0 && len(f.edited) == 0 && f.locate(entries) &&
		!slices.IsSortedFunc(entries, byInput) {
		sorted, err = true, f.rewrite(entries)
	}
	if err != nil {
		return false, fmt.Errorf("sort rejects: %w", err)
	}
	return sorted, f.RemoveIndex()
}

// RemoveIndex removes the journal of rejected records, if it exists.
func (f *Folder) RemoveIndex() error {
	if err := os.Remove(filepath.Join(f.Path, RejectIndexFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the index of rejects: %w", err)
	}
	return nil
}

func byInput(a, b rejectEntry) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Record, b.Record))
}

func readIndex(name string) (entries []rejectEntry, err error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() > maxSorted*entryBytes {
		return nil, err
	}
	for r := bufio.NewReader(file); ; {
		var e rejectEntry
		if err := binary.Read(r, binary.LittleEndian, &e.rejectKept); err == io.EOF {
			return entries, nil
		} else if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
}

// locate finds where the records and reasons begin, and reports whether the files hold nothing else.
func (f *Folder) locate(entries []rejectEntry) bool {
	reasons := int64(0)
	raw := map[uint32]int64{}
	for i := range entries {
		e := &entries[i]
		if int(e.Header) >= len(f.headers) {
			return false
		}
		if _, begun := raw[e.Header]; !begun {
			h := &f.headers[e.Header]
			raw[e.Header] = int64(len(h.Text) + len(h.missingEnd(h.Text)))
		}
		e.at, e.reasonAt = raw[e.Header], reasons
		raw[e.Header] += int64(e.Raw)
		reasons += int64(e.Reason)
	}
	for header, length := range raw {
		if f.lengths[f.below(f.rejectsPath(int(header)))] != length {
			return false
		}
	}
	return f.lengths[ReasonsFile] == reasons
}

func (f *Folder) rewrite(entries []rejectEntry) error {
	slices.SortStableFunc(entries, byInput)
	headers := map[uint32]bool{}
	for i := range entries {
		headers[entries[i].Header] = true
	}
	for header := range headers {
		name := f.rejectsPath(int(header))
		err := rewriteFile(name, func(from io.ReaderAt, to io.Writer) error {
			h := &f.headers[header]
			if _, err := io.WriteString(to, string(h.Text)+h.missingEnd(h.Text)); err != nil {
				return err
			}
			for i := range entries {
				if e := &entries[i]; e.Header == header {
					if _, err := io.Copy(to, io.NewSectionReader(from, e.at, int64(e.Raw))); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return rewriteFile(filepath.Join(f.Path, ReasonsFile), func(from io.ReaderAt, to io.Writer) error {
		for i := range entries {
			if _, err := io.Copy(to, io.NewSectionReader(from, entries[i].reasonAt, int64(entries[i].Reason))); err != nil {
				return err
			}
		}
		return nil
	})
}

func rewriteFile(name string, write func(from io.ReaderAt, to io.Writer) error) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	return atomicfile.Write(name, atomicfile.Options{Perm: 0o600}, func(w io.Writer) error {
		to := bufio.NewWriter(w)
		if err := write(from, to); err != nil {
			return err
		}
		return to.Flush()
	})
}
