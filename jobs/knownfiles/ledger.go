package knownfiles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
)

// File is an input whose content a table has taken.
type File struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Version  string    `json:"version"`
	Modified time.Time `json:"modified,omitzero"`
	Hash     string    `json:"hash"`
	Loaded   time.Time `json:"loaded,omitzero"`
	Run      string    `json:"run,omitempty"`
	SameAs   string    `json:"same_as,omitempty"` // name under which the content was loaded
	Changes  bool      `json:"changes,omitempty"` // its records were changes of rows, whose order matters
}

// Bad is an input that was set aside because of its content.
type Bad struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	Version string    `json:"version"`
	Hash    string    `json:"hash,omitempty"` // hash of its content of Size bytes
	Reason  string    `json:"reason"`
	Nights  int       `json:"nights"` // number of nights on which it was bad
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Held    bool      `json:"held,omitempty"` // retried only when its content or the limit of rejects has changed
	Sent    bool      `json:"sent,omitempty"` // the table may have some of its rows, which must not be sent twice
	// Read and Rejected count records. They are set if more were rejected than the limit allows.
	Read     int64 `json:"read,omitempty"`
	Rejected int64 `json:"rejected,omitempty"`
}

// event is an object of a ledger. Events are numbered and never changed.
type event struct {
	Format  int               `json:"version"`
	Kind    string            `json:"kind"`              // loaded, begun, forgotten, or all (replaces all earlier events)
	Table   int64             `json:"created,omitempty"` // creation time of the table
	Job     string            `json:"job,omitempty"`
	Command string            `json:"command,omitempty"`
	Time    time.Time         `json:"time"`
	Files   []File            `json:"files,omitempty"`
	Former  []File            `json:"former,omitempty"` // contents that the inputs no longer have
	Names   []string          `json:"names,omitempty"`
	Bad     []Bad             `json:"bad,omitempty"`
	Gone    []string          `json:"gone,omitempty"`  // bad inputs that no longer exist
	Works   []string          `json:"works,omitempty"` // commands that loaded inputs
	Heads   []head            `json:"heads,omitempty"` // heads of Names, in the same order
	Begun   map[string]*begun `json:"begun,omitempty"`
	Units   map[string]string `json:"units,omitempty"` // units of columns by name
}

// head distinguishes contents that are not completely known. Equal contents have equal heads.
type head struct {
	Size int64  `json:"size"`
	Sum  string `json:"sum"` // SHA-256 of its beginning
}

// begun is an unfinished load.
type begun struct {
	Command string   `json:"command,omitempty"`
	Names   []string `json:"names"`
	Heads   []head   `json:"heads,omitempty"` // heads of Names; missing in earlier versions
}

// Kinds of events.
const (
	kindLoaded    = "loaded"
	kindBegun     = "begun"
	kindForgotten = "forgotten"
	kindAll       = "all"
)

const (
	eventFormat = 1
	eventPrefix = "event."
	// mergeFrom is the number of objects above which a ledger is merged into one.
	mergeFrom = 32
	// mostCommands limits the number of recorded commands.
	mostCommands = 8
)

// Ledger records what a table has taken. One process at a time writes it, under a lease or lock; others may read it.
type Ledger struct {
	store jobdir.Store
	next  int64
	old   []string // objects to be merged
	table int64    // creation time of the ledger's table
	files map[string]File
	begun map[string]*begun // unfinished loads by job
	bad   map[string]Bad
	units map[string]string // units of columns written by loads
	works []string          // the latest commands that loaded inputs
	// contents maps size and hash to every content that the table has taken, even if no input has it now.
	contents map[content]File
}

type content struct {
	size int64
	hash string
}

func Open(ctx context.Context, store jobdir.Store) (*Ledger, error) {
	for attempt := 1; ; attempt++ {
		l := &Ledger{store: store}
		l.clear()
		err := l.read(ctx)
		if errors.Is(err, fs.ErrNotExist) && attempt < 5 {
			continue // the objects were merged in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("read the known files in %s: %w", store, err)
		}
		return l, nil
	}
}

func (l *Ledger) read(ctx context.Context) error {
	names, err := l.store.List(ctx, eventPrefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		var number int64
		if _, err := fmt.Sscanf(name, eventPrefix+"%d", &number); err != nil {
			continue
		}
		body, err := l.store.Get(ctx, name)
		if err != nil {
			return err
		}
		var e event
		if err := progress.Decode(name, body, eventFormat, &e, "start over with another --state"); err != nil {
			return err
		}
		l.apply(&e)
		l.next = max(l.next, number+1)
		l.old = append(l.old, name)
	}
	return nil
}

func (l *Ledger) apply(e *event) {
	if e.Table != l.table && e.Table != 0 {
		l.become(e.Table)
	}
	if e.Kind == kindAll {
		l.clear()
	}
	maps.Copy(l.units, e.Units)
	for _, command := range e.Works {
		l.works = append(slices.DeleteFunc(l.works, func(c string) bool { return c == command }), command)
		l.works = l.works[max(0, len(l.works)-mostCommands):]
	}
	switch e.Kind {
	case kindAll:
		maps.Copy(l.begun, e.Begun)
		for _, f := range e.Former {
			l.contents[content{f.Size, f.Hash}] = f
		}
		l.enter(e.Files)
	case kindLoaded:
		delete(l.begun, e.Job)
		l.enter(e.Files)
	case kindBegun:
		l.begun[e.Job] = &begun{e.Command, e.Names, e.Heads}
	case kindForgotten:
		for _, name := range e.Names {
			delete(l.files, name)
			delete(l.bad, name)
			maps.DeleteFunc(l.contents, func(_ content, f File) bool { return f.Name == name || f.SameAs == name })
		}
		for job, b := range l.begun {
			if b = b.without(e.Names); len(b.Names) == 0 {
				delete(l.begun, job)
			} else {
				l.begun[job] = b
			}
		}
	}
	for _, b := range e.Bad {
		l.bad[b.Name] = b
	}
	for _, name := range e.Gone {
		delete(l.bad, name)
	}
}

func (b *begun) without(names []string) *begun {
	left := &begun{Command: b.Command}
	for i, name := range b.Names {
		if slices.Contains(names, name) {
			continue
		}
		left.Names = append(left.Names, name)
		if i < len(b.Heads) {
			left.Heads = append(left.Heads, b.Heads[i])
		}
	}
	return left
}

func (l *Ledger) enter(files []File) {
	for _, f := range files {
		l.files[f.Name] = f
		delete(l.bad, f.Name)
		if c := (content{f.Size, f.Hash}); l.contents[c].Name == "" {
			l.contents[c] = f
		}
	}
}

// become turns the ledger into that of a new table, without contents. Bad inputs remain unless both tables existed.
func (l *Ledger) become(created int64) {
	bad := l.bad
	if l.clear(); l.table == 0 || created == 0 {
		l.bad = bad
	}
	l.table = created
}

func (l *Ledger) clear() {
	l.bad, l.works = map[string]Bad{}, nil
	l.files, l.begun, l.contents, l.units = map[string]File{}, map[string]*begun{}, map[content]File{}, map[string]string{}
}

// bind ties the ledger to the table with that creation time. 0 means that it is not yet created.
func (l *Ledger) bind(created int64) {
	if created != l.table || created == 0 {
		l.become(created)
	}
}

func (l *Ledger) Files() []File {
	return slices.SortedFunc(maps.Values(l.files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}

// Bad returns the inputs that were set aside, by name.
func (l *Ledger) Bad() []Bad {
	return slices.SortedFunc(maps.Values(l.bad), func(a, b Bad) int { return strings.Compare(a.Name, b.Name) })
}

func (l *Ledger) sizes() map[int64]bool {
	all := map[int64]bool{}
	for c := range l.contents {
		all[c.size] = true
	}
	return all
}

// unfinished is an input that an unfinished load of another job has begun to load.
type unfinished struct {
	Name    string
	Command string // resumes the load
	Sum     string // checksum of its head
}

// otherJobs returns the inputs of unfinished loads of other jobs, by name and, where known, by size.
func (l *Ledger) otherJobs(job string) (byName map[string]unfinished, bySize map[int64][]unfinished) {
	byName, bySize = map[string]unfinished{}, map[int64][]unfinished{}
	for other, b := range l.begun {
		if other == job {
			continue
		}
		for i, name := range b.Names {
			u := unfinished{Name: name, Command: b.Command}
			if i < len(b.Heads) {
				u.Sum = b.Heads[i].Sum
				bySize[b.Heads[i].Size] = append(bySize[b.Heads[i].Size], u)
			}
			byName[name] = u
		}
	}
	return byName, bySize
}

// Empty reports whether nothing was ever recorded.
func (l *Ledger) Empty() bool { return l.next == 0 }

// Forget removes inputs, so that they are loaded again when found.
func (l *Ledger) Forget(ctx context.Context, names []string, now time.Time) error {
	return l.append(ctx, &event{Kind: kindForgotten, Table: l.table, Names: names, Time: now})
}

func (l *Ledger) append(ctx context.Context, e *event) error {
	if err := l.put(ctx, e); err != nil {
		return err
	}
	l.apply(e)
	if len(l.old) < mergeFrom {
		return nil
	}
	old := l.old
	if err := l.put(ctx, &event{Kind: kindAll, Table: l.table, Time: e.Time, Files: l.Files(), Bad: l.Bad(),
		Works: l.works, Former: l.former(), Begun: l.begun, Units: l.units}); err != nil {
		return err
	}
	l.old = l.old[len(l.old)-1:]
	for _, name := range old {
		if err := l.store.Delete(ctx, name); err != nil {
			break // the remaining objects do no harm, because rereading them changes nothing
		}
	}
	return nil
}

// former returns the contents that no known file has.
func (l *Ledger) former() (all []File) {
	has := map[content]bool{}
	for _, f := range l.files {
		has[content{f.Size, f.Hash}] = true
	}
	for c, f := range l.contents {
		if !has[c] {
			all = append(all, f)
		}
	}
	slices.SortFunc(all,
		func(a, b File) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Hash, b.Hash)) })
	return all
}

func (l *Ledger) put(ctx context.Context, e *event) error {
	e.Format = eventFormat
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("record known files: %w", err)
	}
	name := fmt.Sprintf("%s%09d", eventPrefix, l.next)
	err = l.store.PutAbsent(ctx, name, body)
	if errors.Is(err, jobdir.ErrExists) {
		return fmt.Errorf("record known files in %s: another process has changed them meanwhile; try again", l.store)
	}
	if err != nil {
		return fmt.Errorf("record known files in %s: %w", l.store, err)
	}
	l.next++
	l.old = append(l.old, name)
	return nil
}

// Knows reports whether the input of this name is known, bad or being loaded.
func (l *Ledger) Knows(name string) bool {
	_, known := l.files[name]
	byName, _ := l.otherJobs("")
	_, begun := byName[name]
	_, bad := l.bad[name]
	return known || begun || bad
}
