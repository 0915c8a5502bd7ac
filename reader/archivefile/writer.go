package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
)

// Files in the folder while an archive is being written. The journal is removed last.
const (
	journalName = ".tsimport-archive.jsonl" // describes the table and lists every complete part
	lockName    = ".tsimport-archive.lock"
)

// Kind is a kind of archive.
type Kind struct {
	noun     string // used in messages
	format   string
	version  int
	manifest string         // name of the manifest
	part     *regexp.Regexp // matches the names of parts and, in practice, no other file's
}

// Exact is the kind of exact archives; Lake is the kind of lakes, for other programs.
var (
	Exact = &Kind{"archive", Format, Version, ManifestName, partName}
	Lake  = &Kind{"export", LakeFormat, LakeVersion, LakeManifestName, lakeName}
)

// Subject describes the archived table. It is the first line of the journal.
type Subject struct {
	Format  string            `json:"format"`
	Version int               `json:"version"`
	Table   string            `json:"table"`
	Target  string            `json:"target"`
	Created int64             `json:"creation_time"`
	Key     []table.KeyColumn `json:"primary_key"`
	Holds   Selection         `json:"holds"`
	// Division describes how the table is cut into ranges; Ranges holds their names.
	Division []byte    `json:"division"`
	Ranges   []string  `json:"ranges"`
	Began    time.Time `json:"scan_began"`
	Layout   Layout    `json:"layout,omitzero"` // in a lake only
}

// facts returns the facts in which a resumed export must agree; created is the creation time found by the other one.
func (s *Subject) facts(created int64) []progress.Fact {
	return append([]progress.Fact{
		{Name: "the target", Value: s.Target}, {Name: "the table", Value: s.Table},
		{Name: "the table's primary key", Value: fmt.Sprint(s.Key)}, progress.Made(s.Created, created),
	}, slices.Concat(s.Holds.Facts(), s.Layout.facts())...)
}

// Progress says how far a range has been written.
type Progress struct {
	Next  []byte `json:"next,omitempty"` // position of the first row not in any part
	Rows  int64  `json:"rows"`           // rows in parts
	Parts int    `json:"parts"`
	Ended bool   `json:"ended"`
}

// entry is a line of the journal: a range's progress or, if Puts is set, the files about to be put.
type entry struct {
	Part  *Part        `json:"part,omitempty"`  // absent if the range ends without more rows
	Files []*Part      `json:"files,omitempty"` // listing a file again means that it was rewritten
	Puts  []string     `json:"puts,omitempty"`
	Grown []FileColumn `json:"grown,omitempty"` // in a lake: columns that are new in this entry or have new types
	Range int          `json:"range"`
	At    Progress     `json:"at"`
}

// ChangedError says that an export cannot continue the interrupted one in the same place, because the two differ.
type ChangedError struct {
	Place   string
	Changes []string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("an interrupted export to %s cannot be continued: %s; repeat the same command, or "+
		progress.StartOver, e.Place, strings.Join(e.Changes, ", and "))
}

// UnusableError says that the leftovers of an interrupted export are damaged.
type UnusableError struct{ error }

// OccupiedError says that a folder cannot hold a new archive.
type OccupiedError struct{ Dir, Why string }

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%s %s; name a new folder", e.Dir, e.Why)
}

// Writer writes an archive. Between Begin and Finish, ranges may be written concurrently, each by one goroutine.
type Writer struct {
	Resumed int64 // rows written before the interruption, if any

	kind  *Kind
	place place
	key   []string
	step  func(name string) error // called after each step; tests simulate kills with it

	mu        sync.Mutex
	subject   Subject
	ranges    []Progress
	parts     []Part
	known     map[string]int      // index in parts of each of a lake's files, by name
	unsettled map[int][]string    // by range: files that an interrupted export may still put
	columns   []FileColumn        // in a lake: columns recorded in the journal
	grown     func() []FileColumn // in a lake: returns all columns found so far
}

// Open prepares a folder for an archive. With fresh, it removes an interrupted export; otherwise, Begin continues it.
func (k *Kind) Open(dir string, fresh bool) (*Writer, error) {
	f, err := newFolder(dir)
	if err != nil {
		return nil, err
	}
	return k.open(f, fresh)
}

// OpenIn is like Open, for an object store. ctx bounds all operations; onWait is called if another writer is active.
func (k *Kind) OpenIn(ctx context.Context, s jobdir.Store, fresh bool, onWait func(owner string)) (*Writer, error) {
	return k.open(&objects{ctx: ctx, store: s, onWait: onWait}, fresh)
}

func (k *Kind) open(at place, fresh bool) (w *Writer, err error) {
	w = &Writer{kind: k, place: at, step: func(string) error { return nil }, unsettled: map[int][]string{},
		known: map[string]int{}}
	if _, err := w.files(); err != nil {
		return nil, err
	}
	if err := at.lock(); err != nil {
		return nil, err
	}
	if _, err = w.files(); err == nil { // the previous holder of the lock may have completed an archive
		if fresh {
			err = w.clear(func(string) bool { return false })
		} else {
			err = w.readJournal()
		}
	}
	if err != nil {
		return nil, errors.Join(err, at.unlock())
	}
	return w, nil
}

// files returns the sizes of all files, or an OccupiedError if any of them is not from an unfinished export.
func (w *Writer) files() (map[string]int64, error) {
	sizes, err := w.place.sizes()
	if err != nil {
		return nil, fmt.Errorf("read archive folder %s: %w", w.place, err)
	}
	if _, there := sizes[w.kind.manifest]; there {
		why := "holds another " + w.kind.manifest
		if w.kind.in(context.Background(), w.place) {
			why = "holds a complete " + w.kind.noun + " already"
		}
		return nil, &OccupiedError{w.place.String(), why}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if whole := strings.TrimSuffix(name, atomicfile.Suffix); whole != journalName && whole != lockName &&
			whole != w.kind.manifest && !w.kind.part.MatchString(whole) {
			return nil, &OccupiedError{w.place.String(), fmt.Sprintf("holds other files (%s)", name)}
		}
	}
	return sizes, nil
}

// clear removes an export's files except the parts for which kept returns true and, if there is a subject, the journal.
func (w *Writer) clear(kept func(part string) bool) error {
	sizes, err := w.files()
	if err != nil {
		return err
	}
	for name := range sizes {
		whole := strings.TrimSuffix(name, atomicfile.Suffix)
		if whole == name && (!w.kind.part.MatchString(name) || kept(name)) || whole == lockName {
			continue
		}
		if err := w.place.remove(name); err != nil {
			return fmt.Errorf("remove the leftovers of an export: %w", err)
		}
	}
	if w.subject.Format != "" {
		return nil
	}
	if err := w.place.remove(journalName); err != nil {
		return fmt.Errorf("remove the leftovers of an export: %w", err)
	}
	return nil
}

// Subject returns the subject of an interrupted export, or false if there is none.
func (w *Writer) Subject() (Subject, bool) { return w.subject, w.subject.Format != "" }

func (w *Writer) readJournal() error {
	text, err := w.place.continueJournal()
	if errors.Is(err, fs.ErrNotExist) {
		return w.clear(func(string) bool { return false })
	}
	if err != nil {
		return fmt.Errorf("read journal of the archive: %w", err)
	}
	damaged := func(err error) error {
		return &UnusableError{fmt.Errorf("%s is damaged: %w; "+progress.StartOver, w.place.Path(journalName), err)}
	}
	first, rest, _ := bytes.Cut(text, []byte{'\n'})
	if err := json.Unmarshal(first, &w.subject); err != nil || w.subject.Format == "" {
		return damaged(cmp.Or(err, errors.New("its first line is missing")))
	}
	if w.subject.Format != w.kind.format {
		return &ChangedError{w.place.String(), []string{"its --format was different"}}
	}
	if w.subject.Version != w.kind.version {
		return &UnusableError{fmt.Errorf("%s has format version %d; use the tsimport version that wrote it, or "+
			progress.StartOver, w.place.Path(journalName), w.subject.Version)}
	}
	sizes, err := w.files()
	if err != nil {
		return err
	}
	w.ranges = make([]Progress, len(w.subject.Ranges))
	for line := range bytes.Lines(rest) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return damaged(err)
		}
		if e.Range < 0 || e.Range >= len(w.ranges) {
			return damaged(fmt.Errorf("it has no range %d", e.Range))
		}
		w.apply(&e)
	}
	known := map[string]bool{}
	for i := range w.parts {
		p := &w.parts[i]
		size, there := sizes[p.Name]
		if rewritten := w.ended() && p.Width < len(w.columns); !there || size >= 0 && size != p.Bytes && !rewritten {
			return &UnusableError{fmt.Errorf("continue archive: part %s is missing or was changed; "+progress.StartOver,
				w.place.Path(p.Name))}
		}
		known[p.Name] = true
		w.Resumed += p.Rows
	}
	return w.clear(func(part string) bool { return known[part] })
}

func (w *Writer) apply(e *entry) {
	for _, c := range e.Grown {
		if i := slices.IndexFunc(w.columns, func(known FileColumn) bool { return known.Name == c.Name }); i >= 0 {
			w.columns[i] = c
		} else {
			w.columns = append(w.columns, c)
		}
	}
	if e.Puts != nil {
		w.unsettled[e.Range] = append(w.unsettled[e.Range], e.Puts...)
		return
	}
	delete(w.unsettled, e.Range)
	w.ranges[e.Range] = e.At
	if e.Part != nil {
		w.parts = append(w.parts, *e.Part)
	}
	for _, p := range e.Files {
		if i, there := w.known[p.Name]; there {
			w.parts[i] = *p
			continue
		}
		w.known[p.Name], w.parts = len(w.parts), append(w.parts, *p)
	}
}

func (w *Writer) ended() bool {
	return !slices.ContainsFunc(w.ranges, func(at Progress) bool { return !at.Ended })
}

// Begin begins an archive, or continues one with its recorded ranges and start time. ChangedError means that s differs.
func (w *Writer) Begin(s Subject) error {
	s.Format, s.Version, w.key = w.kind.format, w.kind.version, nil
	for _, c := range s.Key {
		w.key = append(w.key, c.Name)
	}
	if w.subject.Format != "" {
		if changes, _ := progress.Changes(w.subject.facts(s.Created), s.facts(w.subject.Created)); len(changes) > 0 {
			return &ChangedError{w.place.String(), changes}
		}
		return nil
	}
	line, err := json.Marshal(s)
	if err == nil {
		err = w.place.beginJournal(append(line, '\n'))
	}
	if err == nil {
		err = w.step("journal begun")
	}
	if err != nil {
		return fmt.Errorf("begin archive: %w", err)
	}
	w.subject, w.ranges = s, make([]Progress, len(s.Ranges))
	return nil
}

func (w *Writer) Range(i int) Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ranges[i]
}

// note appends an entry to the journal and syncs it.
func (w *Writer) note(e entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.grown != nil {
		e.Grown = growth(w.columns, w.grown())
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = w.place.appendJournal(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write journal of the archive: %w", err)
	}
	w.apply(&e)
	return nil
}

// End records that a range has no more rows.
func (w *Writer) End(i int) error {
	at := w.Range(i)
	at.Next, at.Ended = nil, true
	return w.note(entry{Range: i, At: at})
}

// Rows returns the number of rows in all parts.
func (w *Writer) Rows() (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.ranges {
		n += r.Rows
	}
	return n
}

// Close closes the archive. An unfinished archive can be resumed.
func (w *Writer) Close() error {
	return errors.Join(w.place.closeJournal(), w.place.unlock())
}

// Finish writes the manifest and removes the journal. It takes options, predefined columns and indexes from m.
func (w *Writer) Finish(m Manifest) (*Manifest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.subject
	m.Format, m.Version, m.files = Format, Version, w.place
	m.Table, m.Target, m.Created, m.Key, m.Holds, m.Began = s.Table, s.Target, s.Created, s.Key, s.Holds, s.Began
	m.Ended = time.Now().UTC().Truncate(time.Millisecond)
	m.Ranges = make([]Range, len(w.ranges))
	for i, r := range w.ranges {
		if !r.Ended {
			return nil, fmt.Errorf("finish archive: range %d is not complete", i+1)
		}
		m.Ranges[i].Name = s.Ranges[i]
	}
	m.Parts = slices.Clone(w.parts)
	m.Columns = columnsOf(m.Parts)
	slices.SortStableFunc(m.Parts, func(a, b Part) int { return cmp.Compare(a.Range, b.Range) })
	for i := range m.Parts {
		p := &m.Parts[i]
		r := &m.Ranges[p.Range]
		m.Rows, m.Cells, m.Bytes = m.Rows+p.Rows, m.Cells+p.Cells, m.Bytes+p.Bytes
		m.Versions = max(m.Versions, p.Versions)
		r.Rows, r.Bytes = r.Rows+p.Rows, r.Bytes+p.Bytes
		if r.First == nil {
			r.First = p.First
		}
		if p.Last != nil {
			r.Last = p.Last
		}
		widen(&m.Smallest, &m.Largest, p.Smallest)
		widen(&m.Smallest, &m.Largest, p.Largest)
	}
	if m.Indexes == nil {
		m.Indexes = []string{}
	}
	if m.Defined == nil {
		m.Defined = []Column{}
	}
	text, err := m.text()
	if err == nil {
		err = w.end(text)
	}
	if err != nil {
		return nil, err
	}
	return &m, nil
}

func (w *Writer) end(manifest []byte) error {
	if err := w.step("before the manifest"); err != nil {
		return err
	}
	if err := w.place.put(w.kind.manifest, manifest); err != nil {
		return fmt.Errorf("write manifest of %s: %w", w.place, err)
	}
	if err := w.step("manifest written"); err != nil {
		return err
	}
	if err := w.place.clean(); err != nil {
		return fmt.Errorf("finish archive: %w", err)
	}
	return nil
}

// columnsOf returns the names of all columns of the parts, or nil if they are unknown or too many.
func columnsOf(parts []Part) []string {
	names, known := map[string]bool{}, true
	for i := range parts {
		p := &parts[i]
		known = known && (p.Columns != nil || p.Cells == 0)
		for _, name := range p.Columns {
			names[name] = true
		}
		p.Columns = nil
	}
	if !known || len(names) > maxColumns {
		return nil
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}

func widen(smallest, largest **int64, at *int64) {
	if at == nil {
		return
	}
	if *smallest == nil || *at < **smallest {
		*smallest = new(*at)
	}
	if *largest == nil || *at > **largest {
		*largest = new(*at)
	}
}

// PartWriter buffers a part in memory until it is complete. It is not safe for concurrent use.
type PartWriter struct {
	w           *Writer
	part        Part
	body        bytes.Buffer
	packer      *zstd.Encoder // compresses into body
	line        []byte
	first, last []byte
	columns     map[string]bool // at most maxColumns + 1 names
}

// NewPart begins the next part of a range.
func (w *Writer) NewPart(rng int) (*PartWriter, error) {
	at := w.Range(rng)
	p := &PartWriter{w: w, columns: map[string]bool{},
		part: Part{Range: rng, Name: fmt.Sprintf("archive-%05d-%05d.jsonl.zst", rng+1, at.Parts+1)}}
	var err error
	if p.packer, err = zstd.NewWriter(&p.body, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true)); err != nil {
		return nil, fmt.Errorf("create %s of the archive: %w", p.part.Name, err)
	}
	return p, nil
}

// Row adds a row. All versions of a cell must be adjacent.
func (p *PartWriter) Row(rec *record.Record) error {
	p.line = jsonl.AppendWhole(p.line[:0], p.w.key, rec)
	if _, err := p.packer.Write(p.line); err != nil {
		return fmt.Errorf("write part of the archive: %w", err)
	}
	if p.part.Rows == 0 {
		p.first = jsonl.AppendKey(nil, p.w.key, rec.Fields)
	}
	p.last = jsonl.AppendKey(p.last[:0], p.w.key, rec.Fields)
	p.part.Rows++
	p.part.Cells += int64(len(rec.Cells))
	p.part.Text += int64(len(p.line))
	versions := 0
	for i := range rec.Cells {
		if i == 0 || !bytes.Equal(rec.Cells[i].Name, rec.Cells[i-1].Name) {
			versions = 0
			if len(p.columns) <= maxColumns && !p.columns[string(rec.Cells[i].Name)] {
				p.columns[string(rec.Cells[i].Name)] = true
			}
		}
		versions++
		p.part.Versions = max(p.part.Versions, versions)
		at := rec.Cells[i].At
		if p.part.Smallest == nil || at < *p.part.Smallest || at > *p.part.Largest {
			widen(&p.part.Smallest, &p.part.Largest, &at)
		}
	}
	return nil
}

func (p *PartWriter) Text() int64 { return p.part.Text }

// Commit stores the part and records it in the journal. next is the position of the next row; nil ends the range.
func (p *PartWriter) Commit(next []byte) error {
	if err := p.packer.Close(); err != nil {
		return fmt.Errorf("write part of the archive: %w", err)
	}
	sum := sha256.Sum256(p.body.Bytes())
	p.part.Bytes, p.part.SHA256 = int64(p.body.Len()), hex.EncodeToString(sum[:])
	p.part.First, p.part.Last = p.first, bytes.Clone(p.last)
	if len(p.columns) <= maxColumns {
		p.part.Columns = slices.Sorted(maps.Keys(p.columns))
	}
	if err := p.w.step("part written"); err != nil {
		return err
	}
	if err := p.w.place.put(p.part.Name, p.body.Bytes()); err != nil {
		return fmt.Errorf("write part of the archive: %w", err)
	}
	if err := p.w.step("part named"); err != nil {
		return err
	}
	at := p.w.Range(p.part.Range)
	at.Next, at.Rows, at.Parts, at.Ended = next, at.Rows+p.part.Rows, at.Parts+1, next == nil
	if err := p.w.note(entry{Part: &p.part, Range: p.part.Range, At: at}); err != nil {
		return err
	}
	return p.w.step("part noted")
}

// Abandon discards an incomplete part.
func (p *PartWriter) Abandon() error { return p.packer.Close() }

// Step sets a function that tests use to simulate kills: it is called after each step, and its error stops the writer.
func (w *Writer) Step(step func(name string) error) { w.step = step }
