package rundir

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

// Version is the version of a run folder's format. SummaryFile and run.json state it for all files.
const Version = 1

// Names of the files in a run folder.
const (
	SummaryFile = "summary.json"
	ReasonsFile = "rejects.jsonl"
	PageFile    = "report.html"
	// DoubtsFile is the journal of rows numbered by the service that were sent more than once.
	DoubtsFile = "repeated.bin"
	// StampsDir is the folder with the timestamps sent with updates.
	StampsDir = "stamps"
	// BlocksFile is the journal of hashes of the inputs.
	BlocksFile = "blocks.bin"
)

// Root is the folder that holds runs without --run-dir.
const Root = "tsimport-runs"

// DefaultPath returns the folder of a run that begins at start. Its name in Root is the time in UTC and the table.
func DefaultPath(start time.Time, tableName string) string {
	began := start.UTC().Format("20060102T150405.000Z")
	return atomicfile.Beside(filepath.Join(Root, began+"-"+tableName), "")
}

// Folder is an open run folder. It is not safe for concurrent use.
type Folder struct {
	Path    string
	headers []Header
	lengths map[string]int64  // bytes in the files of rejects, by their names below Path
	sums    map[string]uint32 // checksums of these bytes
	edited  []string          // files of rejects that the user has changed, by their current names
	files   []*rejectsFile    // files by header, then that of the reasons; nil until created
	index   *Journal          // nil if rejects are in input order, or not indexed yet
	// openIndex opens the index. It is nil if there is none.
	openIndex func() (*Journal, error)
	ordinal   map[string]int // ordinals of sources, by name
	failed    error          // why a record could not be kept, for the first such record
}

// rejectsFile is a file of rejected records or of reasons. Its File is nil once it is closed.
type rejectsFile struct {
	*os.File
	text *bufio.Writer
	name string // name below the folder
}

func (f *Folder) opened(i int, file *os.File) *rejectsFile {
	return &rejectsFile{file, bufio.NewWriter(file), f.below(f.rejectsPath(i))}
}

func newFolder(path string, headers []Header) *Folder {
	return &Folder{
		Path: path, headers: headers, lengths: map[string]int64{}, sums: map[string]uint32{},
		files: make([]*rejectsFile, len(headers)+1),
	}
}

// Header is an input's header, under which its rejected records are kept.
type Header struct {
	Text []byte // unchanged, with its line end; may be empty
	Dir  string // partition folders below the run folder; "" means the run folder itself
	Kind string // extension of the file: ".csv" (also if "") or ".ndjson"
	// End ends a record; "" means LF. Ended reports whether a record has its end, which the last one of an input may lack.
	// If Ended is nil, a record has its end if it ends with End.
	End   string
	Ended func(record []byte) bool
}

// missingEnd returns the missing part of a record's end.
func (h *Header) missingEnd(record []byte) string {
	end := cmp.Or(h.End, "\n")
	if len(record) == 0 || h.Ended != nil && h.Ended(record) || h.Ended == nil && bytes.HasSuffix(record, []byte(end)) {
		return ""
	}
	return end
}

// Touches reports whether a run in the folder writes or moves the file, so that the file cannot be an input.
func Touches(folder, file string) bool {
	if name := filepath.Base(file); name != SummaryFile && name != PageFile && !isRejectsFile(name) {
		return false
	}
	return SameFile(filepath.Dir(file), folder)
}

// ownFiles lists the names of a run's files, except its rejects, as other packages write them.
var ownFiles = []string{SummaryFile, PageFile, DoubtsFile, BlocksFile, StampsDir, ArchiveFile, "run.json",
	"division.bin", "order.bin", "order.other.bin", RejectIndexFile, "checkpoint.bin", "checkpoint.prev"}

// rejectsPrefix begins the names of all files with rejected rows and their reasons.
const rejectsPrefix = "rejects"

// rejectsNames matches the names that a run gives to files of rejects. Files with other names are the user's.
var rejectsNames = regexp.MustCompile(`^rejects(\.jsonl|(-[1-9][0-9]*)?\.(csv|ndjson))$`)

// Grows reports whether a file of a run folder, given its path below the folder, only grows during the run.
func Grows(name string) bool {
	switch base := filepath.Base(name); {
	case base == DoubtsFile, base == BlocksFile, base == RejectIndexFile, strings.HasPrefix(name, StampsDir+"/"):
		return true
	default:
		return isRejectsFile(base)
	}
}

func isRejectsFile(name string) bool { return rejectsNames.MatchString(name) }

// FolderError means that a folder of runs or of locks cannot be created or written to.
type FolderError struct {
	What string
	Err  error
}

func (e *FolderError) Error() string {
	if !e.lasts() {
		return fmt.Sprintf("%s: %v", e.What, e.Err)
	}
	return fmt.Sprintf("%s: %v; name a writable folder with --run-dir, or run the command in one", e.What, e.Err)
}

func (e *FolderError) Unwrap() error { return e.Err }

func (e *FolderError) Exit() int {
	if e.lasts() {
		return 2
	}
	return 1
}

func (e *FolderError) lasts() bool {
	return errors.Is(e.Err, fs.ErrPermission) || errors.Is(e.Err, syscall.EROFS) || errors.Is(e.Err, syscall.ENOTDIR) ||
		errors.Is(e.Err, syscall.EEXIST)
}

// Create creates the folder. It first moves the files of an earlier run in it, if any, to attempt-N below it.
func Create(path string, headers []Header) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, &FolderError{"create run folder", err}
	}
	f := newFolder(path, headers)
	if err := KeepEarlier(path); err != nil {
		return nil, err
	}
	// If the folder cannot be written to, the run must fail before its first row, not at its first reject.
	if err := WriteSummary(path, map[string]string{"state": "running"}); err != nil {
		return nil, err
	}
	return f, nil
}

// KeepEarlier moves the files of an earlier run in a folder, if any, to attempt-N below the folder.
func KeepEarlier(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("move the earlier run in %s aside: %w", path, err)
		}
	}()
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old []string
	for _, e := range entries {
		if e.IsDir() && strings.Contains(e.Name(), "=") { // a folder with rejects of partition folders
			old = append(old, e.Name())
		}
		if e.Type().IsRegular() && (slices.Contains(ownFiles, strings.TrimSuffix(e.Name(), atomicfile.Suffix)) ||
			isRejectsFile(e.Name()) || isEdited(e.Name())) {
			old = append(old, e.Name())
		}
	}
	if len(old) == 0 {
		return nil
	}
	attempt := ""
	for n := 1; attempt == "" || errors.Is(err, fs.ErrExist); n++ {
		attempt = filepath.Join(path, fmt.Sprintf("attempt-%d", n))
		err = os.Mkdir(attempt, 0o700)
	}
	for _, name := range old {
		if err == nil {
			err = os.Rename(filepath.Join(path, name), filepath.Join(attempt, name))
		}
	}
	return err
}

// RejectsFile returns the name of the file with the rejected records of the i-th header.
func RejectsFile(i int, kind string) string {
	kind = cmp.Or(kind, ".csv")
	if i == 0 {
		return rejectsPrefix + kind
	}
	return fmt.Sprintf("%s-%d%s", rejectsPrefix, i+1, kind)
}

// RejectsFiles returns the paths of this run's reject files, ReasonsFile last, with the new names of files moved aside.
func (f *Folder) RejectsFiles() []string {
	var made []string
	for i := range f.files {
		if i == len(f.headers) {
			made = append(made, f.edited...)
		}
		if f.files[i] != nil {
			made = append(made, f.rejectsPath(i))
		}
	}
	return made
}

// rejectsPath returns the path of a header's file. The index after the last header's is that of the reasons.
func (f *Folder) rejectsPath(header int) string {
	if header == len(f.headers) {
		return filepath.Join(f.Path, ReasonsFile)
	}
	h := f.headers[header]
	return filepath.Join(f.Path, filepath.FromSlash(h.Dir), RejectsFile(header, h.Kind))
}

// Reject keeps a rejected record under the header-th header, and its reason. After a failure, every Flush fails.
func (f *Folder) Reject(header int, r table.Reject) error {
	err := f.reject(header, r)
	f.failed = cmp.Or(f.failed, err)
	return err
}

func (f *Folder) reject(header int, r table.Reject) error {
	reasons := len(f.headers)
	for _, i := range []int{reasons, header} {
		if err := f.make(i); err != nil {
			return fmt.Errorf("store rejected row: %w", err)
		}
	}
	f.writeRecord(header, r.Raw)
	line, err := json.Marshal(ReasonOf(&r))
	if err != nil {
		return fmt.Errorf("store rejected row: %w", err)
	}
	line = append(line, '\n')
	f.write(reasons, line)
	raw := len(r.Raw) + len(f.headers[header].missingEnd(r.Raw))
	return f.indexOne(header, r.Location.Source, r.Location.Record, raw, len(line))
}

// make creates a file with its header, unless it is open. Only its owner may read it, because it holds data.
func (f *Folder) make(i int) error {
	if f.files[i] != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.rejectsPath(i)), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(f.rejectsPath(i), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if f.files[i] = f.opened(i, file); i < len(f.headers) {
		f.writeRecord(i, f.headers[i].Text)
	}
	return nil
}

func (f *Folder) writeRecord(header int, text []byte) {
	f.write(header, text)
	f.write(header, []byte(f.headers[header].missingEnd(text)))
}

func (f *Folder) write(i int, text []byte) {
	file := f.files[i]
	_, _ = file.text.Write(text) // a bufio.Writer keeps its error for Flush
	f.lengths[file.name] += int64(len(text))
	f.sums[file.name] = crc32.Update(f.sums[file.name], castagnoli, text)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Flush writes data buffered by Reject.
func (f *Folder) Flush() error {
	var err error
	for _, file := range f.files {
		if file != nil {
			err = errors.Join(err, file.text.Flush())
		}
	}
	if err != nil {
		return fmt.Errorf("store rejected rows: %w", err)
	}
	return f.failed
}

// WriteSummary atomically replaces the summary.
func WriteSummary(folder string, summary any) error {
	if err := progress.Write(filepath.Join(folder, SummaryFile), 0o600, Version, summary); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// Close flushes, syncs and closes the files of rejects.
func (f *Folder) Close() error {
	err := f.Flush()
	for _, file := range f.files {
		if file != nil && file.File != nil {
			err = errors.Join(err, file.Sync(), file.Close())
			file.File = nil
		}
	}
	return err
}
