package knownfiles

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/reader/input"
)

// Options determine which inputs are selected, and in which order.
type Options struct {
	ReloadChanged bool // load a known input again if its content has changed, instead of refusing it
	// SetAside leaves out a known input whose content has changed, instead of refusing it.
	SetAside bool
	// ByName is set if names affect rows, as with --path-columns. Then known content under a new name is loaded.
	ByName bool
	// Changes is set if the inputs hold changes of rows, which must be loaded in order.
	Changes bool
	// Order is OrderName, OrderTime or, for the order of discovery, "".
	Order string
	// Settle leaves out inputs that have changed within this time. 0 leaves out none.
	Settle time.Duration
	// DoneMarker is the name of a file that marks an input as complete, with {} for the input's name; "" requires none.
	DoneMarker string
	// Exceeds reports whether this many rejected records, out of those read, exceed an input's limit.
	Exceeds func(rejected, read int64) bool
	Job     string // identity of the load
	Command string // command that resumes it
	Now     func() time.Time
	// Exists reports whether an input of exactly this name exists.
	Exists func(ctx context.Context, name string) (bool, error)
}

const (
	OrderName = "name" // by name
	OrderTime = "time" // by time of the last change, then by name
)

// Refused is the error for inputs that cannot be loaded as requested.
type Refused struct{ Message string }

func (r *Refused) Error() string { return r.Message }

func (*Refused) Exit() int { return exitcode.Usage }

// missing is the error for an input that an earlier attempt selected and that is gone.
type missing struct{ Refused }

func (*missing) InputMissing() {}

// Selector selects the inputs of one load. Its methods must not run concurrently, except those used while reading.
type Selector struct {
	ledger *Ledger // nil if there is none
	o      Options
	items  []input.Item // chosen inputs; reads of them are not observed
	trees  []*tree
	seen   []File                // inputs with a known content under a new name or time
	bad    []checkpoint.BadInput // bad inputs that are left out
	found  []input.Item
	run    string
	units  map[string]string // units of columns, recorded by Begin
	hashed map[string]string // hashes of whole inputs, by name
	resume bool              // the load resumes an earlier attempt
}

// NewSelector returns a Selector. Without a ledger it only orders inputs and leaves out incomplete ones.
func NewSelector(l *Ledger, o Options) *Selector {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Selector{ledger: l, o: o, hashed: map[string]string{}}
}

// Once reports whether the Selector leaves out known inputs.
func (s *Selector) Once() bool { return s.ledger != nil }

// Select returns the inputs for the table with this creation time (0 if not yet created), and notes for the user. After
// an earlier attempt of the same load it selects exactly the same inputs. Inputs named in without are left out.
func (s *Selector) Select(ctx context.Context, found []input.Item, created int64, earlier []string,
	without map[string]bool) (chosen []input.Item, notes []string, err error) {
	s.sort(found)
	s.found, s.trees, s.seen, s.bad, s.resume = found, nil, nil, nil, earlier != nil
	if s.ledger != nil {
		s.ledger.bind(created)
		for i := range found {
			if found[i].Size < 0 || found[i].Name == input.Stdin {
				return nil, nil, &Refused{fmt.Sprintf("--only-new: %s is a stream, so it is unknown whether it was loaded "+
					"before; save it as a file, or leave --only-new out", found[i].Name)}
			}
			if err := s.touched(ctx, &found[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	if earlier != nil {
		if s.items, err = pick(input.Others(found, without), earlier); err != nil {
			return nil, nil, err
		}
		if s.ledger != nil {
			if notes, err = s.later(ctx, found, earlier); err != nil {
				return nil, nil, err
			}
		}
	} else {
		if s.items, notes, err = s.whole(ctx, found); err != nil {
			return nil, nil, err
		}
		if s.ledger != nil {
			var more []string
			if s.items, more, err = s.unknown(ctx, s.items); err != nil {
				return nil, nil, err
			}
			notes = append(notes, more...)
		}
		s.items = input.Others(s.items, without) // their copies are still left out
	}
	if s.ledger == nil {
		return s.items, notes, nil
	}
	for i := range s.items {
		t := newTree(s.items[i].Size)
		s.trees = append(s.trees, t)
		chosen = append(chosen, s.items[i].Observed(t.observe))
	}
	return chosen, notes, nil
}

func (s *Selector) sort(items []input.Item) {
	switch s.o.Order {
	case OrderName:
		slices.SortStableFunc(items, func(a, b input.Item) int { return strings.Compare(a.Name, b.Name) })
	case OrderTime:
		slices.SortStableFunc(items,
			func(a, b input.Item) int {
				return cmp.Or(a.Modified.Compare(b.Modified), strings.Compare(a.Name, b.Name))
			})
	}
}

// compare orders known inputs as sort does.
func (s *Selector) compare(a, b *File) int {
	if c := a.Modified.Compare(b.Modified); s.o.Order == OrderTime && c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// againWith is the advice about changes that precede ones already loaded.
const againWith = "move it away, or forget all inputs after it (tsimport files forget), to load them again in order"

// lastChanges returns the last input in the order whose changes the table has taken.
func (s *Selector) lastChanges() (last File) {
	for _, f := range s.ledger.files {
		if f.Changes && (last.Name == "" || s.compare(&last, &f) < 0) {
			last = f
		}
	}
	return last
}

// pick returns the items with these names, in the order of names.
func pick(found []input.Item, names []string) (items []input.Item, err error) {
	at := places(found)
	for _, name := range names {
		i, ok := at[name]
		if !ok {
			return nil, &missing{Refused{fmt.Sprintf("%s, which the unfinished run has begun to load, is missing", name)}}
		}
		items = append(items, found[i])
	}
	return items, nil
}

// later names the inputs that have come since the load that is resumed began.
func (s *Selector) later(ctx context.Context, found []input.Item, earlier []string) (notes []string, err error) {
	items, _, err := s.whole(ctx, found)
	begun := map[string]bool{}
	for _, name := range earlier {
		begun[name] = true
	}
	var since []string
	for i := range items {
		if n := NameOf(&items[i]); !begun[items[i].Name] && s.ledger.files[n].Name == "" && s.ledger.bad[n].Name == "" {
			since = append(since, items[i].Name)
		}
	}
	return appendNote(nil, since, "left to the next load: this one resumes an earlier one"), err
}

// places maps the names of items to their positions.
func places(items []input.Item) map[string]int {
	at := make(map[string]int, len(items))
	for i := range items {
		at[items[i].Name] = i
	}
	return at
}

// whole leaves out markers, empty inputs, inputs that may still be written to and, with Changes, the inputs after them.
func (s *Selector) whole(ctx context.Context, found []input.Item) (items []input.Item, notes []string, err error) {
	now := s.o.Now()
	var young, unmarked, empty, waiting []string
	markers, at := map[string]bool{}, places(found)
	if s.o.DoneMarker != "" {
		for i := range found {
			markers[s.marker(&found[i])] = true
		}
	}
	for i := range found {
		item := &found[i]
		if markers[item.Name] {
			continue
		}
		if s.o.Changes && len(young)+len(unmarked) > 0 {
			waiting = append(waiting, item.Name)
			continue
		}
		if s.o.Settle > 0 && item.Modified.IsZero() {
			return nil, nil,
				&Refused{fmt.Sprintf("--settle-files: it is unknown when %s was last changed; use --done-marker instead",
					item.Name)}
		}
		if s.o.Settle > 0 && now.Sub(item.Modified) < s.o.Settle {
			young = append(young, item.Name)
			continue
		}
		if s.o.DoneMarker != "" {
			_, there := at[s.marker(item)]
			if !there {
				if there, err = s.o.Exists(ctx, s.marker(item)); err != nil {
					return nil, nil, err
				}
			}
			if !there {
				unmarked = append(unmarked, item.Name)
				continue
			}
		}
		if s.ledger != nil && item.Size == 0 {
			empty = append(empty, item.Name) // if recorded as loaded, it would count as changed once it is written
			continue
		}
		items = append(items, *item)
	}
	notes = appendNote(notes, empty, "left out because empty; loaded once there is content")
	notes = appendNote(notes, young, "left out, changed less than "+s.o.Settle.String()+" ago (--settle-files)")
	notes = appendNote(notes, unmarked, "left out, without their marker "+s.o.DoneMarker+" (--done-marker)")
	notes = appendNote(notes, waiting, "left out: changes wait for the earlier inputs")
	return items, notes, nil
}

func (s *Selector) marker(item *input.Item) string {
	return strings.ReplaceAll(s.o.DoneMarker, "{}", item.Name)
}

// appendNote appends a note that names the inputs, or the first few of many.
func appendNote(notes, names []string, what string) []string {
	if len(names) == 0 {
		return notes
	}
	const shown = 3
	text := strings.Join(names[:min(len(names), shown)], ", ")
	if n := len(names) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return append(notes, text+": "+what)
}

// unknown leaves out inputs whose content the table has taken.
func (s *Selector) unknown(ctx context.Context, found []input.Item) (items []input.Item, notes []string, err error) {
	var known int
	var changed, renamed []string
	others, othersBySize := s.ledger.otherJobs(s.o.Job)
	sizes, bySize, aside, last := s.ledger.sizes(), map[int64][]*input.Item{}, s.aside(), s.lastChanges()
	if names := slices.Sorted(maps.Keys(others)); s.o.Changes && len(names) > 0 {
		return nil, nil, &Refused{fmt.Sprintf("--only-new: an unfinished load has begun to load %s, and changes of these "+
			"inputs may precede its own; finish it first (%s)",
			names[0], others[names[0]].Command)}
	}
	for i := range found {
		item := &found[i]
		if u, begun := others[NameOf(item)]; begun {
			return nil, nil, &Refused{fmt.Sprintf("--only-new: an unfinished load has begun to load %s; finish it first (%s), "+
				"or remove the file from it with tsimport files forget", item.Name, u.Command)}
		}
		b, err := s.asideAs(ctx, item, aside)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case b.Sent:
			s.leaveOut(item, b.Reason+"; some of its rows are in the table and would be duplicated by another load: compare "+
				"them, then run tsimport files forget to load it", b)
			continue
		case b.Held:
			s.leaveOut(item, b.Reason, b)
			continue
		}
		f, ok := s.ledger.files[NameOf(item)]
		switch {
		case ok && f.Size == item.Size && f.Version == item.Version:
			known++
			continue
		case ok:
			same, err := s.same(ctx, item, f)
			if err != nil {
				return nil, nil, err
			}
			if same {
				known++
				s.see(item, f.Hash, f)
				continue
			}
			if s.o.SetAside && !s.o.ReloadChanged {
				s.leaveOut(item, "it changed after it was loaded; --reload-changed, in a job reload-changed: true, loads its "+
					"new content", Bad{})
				continue
			}
			changed = append(changed, item.Name)
			if !s.o.ReloadChanged {
				continue
			}
		case !s.o.ByName:
			is, as, err := s.knownContent(ctx, item, sizes[item.Size], bySize[item.Size])
			if err != nil {
				return nil, nil, err
			}
			if is {
				renamed = append(renamed, fmt.Sprintf("%s (as %s)", item.Name, as))
				continue
			}
		}
		if own := describe(item, ""); s.o.Changes && last.Name != "" && s.compare(&own, &last) < 0 {
			return nil, nil,
				&Refused{fmt.Sprintf("--only-new: %s comes before %s, which was already loaded, so its changes would undo later "+
					"ones; "+againWith, item.Name, last.Name)}
		}
		if err := s.notBegun(ctx, item, othersBySize[item.Size]); err != nil {
			return nil, nil, err
		}
		items = append(items, *item)
		bySize[item.Size] = append(bySize[item.Size], item)
	}
	if len(changed) > 0 && s.o.Changes {
		return nil, nil, &Refused{fmt.Sprintf("--only-new: %s has changed since its changes were loaded%s; "+againWith,
			changed[0], andMore(len(changed)-1))}
	}
	if len(changed) > 0 && !s.o.ReloadChanged {
		return nil, nil,
			&Refused{fmt.Sprintf("--only-new: %s has changed since it was loaded%s; load the new content with "+
				"--reload-changed", changed[0], andMore(len(changed)-1))}
	}
	notes = appendNote(notes, changed, "changed since they were loaded; loaded again (--reload-changed)")
	notes = appendNote(notes, renamed, "left out, this content was loaded under another name (to load it again, forget "+
		"that name: tsimport files forget)")
	if known > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d inputs are known and left out", known, len(found)))
	}
	return items, notes, nil
}

// aside returns the bad inputs that are not to be loaded.
func (s *Selector) aside() []Bad {
	return slices.DeleteFunc(s.ledger.Bad(), func(b Bad) bool {
		return !b.Sent && (!b.Held || b.Rejected > 0 && !s.o.Exceeds(b.Rejected, b.Read))
	})
}

// asideAs returns the bad input for which an input is left out: the one of its name or, for a new name, its content.
func (s *Selector) asideAs(ctx context.Context, item *input.Item, aside []Bad) (Bad, error) {
	name := NameOf(item)
	_, known := s.ledger.files[name]
	for _, b := range aside {
		if b.Name == name && (b.Sent || b.of(item)) {
			return b, nil
		}
		if known || s.o.ByName || b.Size != item.Size {
			continue
		}
		if hash, err := s.hash(ctx, item); err != nil || hash == b.Hash {
			return b, err
		}
	}
	return Bad{}, nil
}

// Copies returns the inputs with the same content as one of the bad inputs. They, too, are bad and not loaded.
func (s *Selector) Copies(bad []checkpoint.BadInput) (copies []checkpoint.BadInput) {
	names := map[string]string{}
	for i := range s.found {
		names[NameOf(&s.found[i])] = s.found[i].Name
	}
	s.seen = slices.DeleteFunc(s.seen, func(f File) bool {
		i := slices.IndexFunc(bad, func(b checkpoint.BadInput) bool { return f.Run == "" && b.Name == names[f.SameAs] })
		if i < 0 {
			return false
		}
		b := bad[i]
		b.Name, b.Source = names[f.Name], -1
		copies = append(copies, b)
		return true
	})
	return copies
}

func (s *Selector) leaveOut(item *input.Item, reason string, was Bad) {
	s.bad = append(s.bad, checkpoint.BadInput{Name: item.Name, Reason: reason, Source: -1, Sent: was.Sent, Held: was.Held,
		Read: was.Read, Rejected: was.Rejected})
}

// Nights returns the number of nights on which the input of this name was bad with its current content.
func (s *Selector) Nights(name string) int {
	for i := range s.found {
		if item := &s.found[i]; item.Name == name {
			if b := s.ledger.bad[NameOf(item)]; b.of(item) {
				return b.Nights
			}
		}
	}
	return 0
}

// touched records the new version of a bad input with unchanged content.
func (s *Selector) touched(ctx context.Context, item *input.Item) error {
	b, known := s.ledger.bad[NameOf(item)]
	if !known || b.Hash == "" || b.Size != item.Size || b.Version == item.Version {
		return nil
	}
	hash, err := s.hash(ctx, item)
	if err == nil && hash == b.Hash {
		b.Version = item.Version
		s.ledger.bad[b.Name] = b
	}
	return err
}

// of reports whether b describes the current version of the input.
func (b Bad) of(item *input.Item) bool {
	return b.Nights > 0 && b.Size == item.Size && b.Version == item.Version
}

// Bad returns the inputs that Select left out because they are bad.
func (s *Selector) Bad() []checkpoint.BadInput { return s.bad }

// Works reports whether the table has taken inputs by the same command.
func (s *Selector) Works() bool {
	return s.ledger != nil && slices.Contains(s.ledger.works, s.o.Command)
}

// noted returns the ledger entries of the inputs that are bad now, and the names of bad ones that no longer exist.
func (s *Selector) noted(ctx context.Context, bad []checkpoint.BadInput, now time.Time) (noted []Bad, gone []string) {
	there, at := map[string]bool{}, places(s.found)
	for i := range s.found {
		there[NameOf(&s.found[i])] = true
	}
	for _, b := range bad {
		i, ok := at[b.Name]
		if !ok {
			continue
		}
		item := &s.found[i]
		n := s.ledger.bad[NameOf(item)]
		if !n.of(item) {
			n = Bad{Name: NameOf(item), Size: item.Size, Version: item.Version, First: now, Reason: n.Reason, Sent: n.Sent}
			if s.resume && b.Source < 0 {
				b.Held = false // it may have been replaced since an earlier attempt left it out
			}
		}
		if !n.Sent {
			n.Reason, n.Sent, n.Held, n.Read, n.Rejected = b.Reason, b.Sent, b.Held, b.Read, b.Rejected
		}
		if n.Hash == "" {
			n.Hash, _ = s.hash(ctx, item) // without a hash, any new version counts as changed content
		}
		n.Last, n.Nights = now, n.Nights+1
		noted = append(noted, n)
	}
	for name, b := range s.ledger.bad {
		renamed := func(n Bad) bool { return n.Sent && n.Hash == b.Hash }
		if there[name] || b.Sent && !slices.ContainsFunc(noted, renamed) {
			continue // rows that were sent must not be repeated if the input comes back
		}
		if is, err := s.o.Exists(ctx, name); !is && err == nil { // otherwise it may be another load's input
			gone = append(gone, name)
		}
	}
	return noted, gone
}

// notBegun refuses an input with the same size and beginning as one that another, unfinished load has begun.
func (s *Selector) notBegun(ctx context.Context, item *input.Item, begun []unfinished) error {
	if len(begun) == 0 || s.o.ByName {
		return nil
	}
	sum, err := headOf(ctx, item)
	if err != nil {
		return err
	}
	for _, u := range begun {
		if u.Sum == sum {
			return &Refused{fmt.Sprintf("--only-new: %s has the size and the beginning of %s, which an unfinished load has "+
				"begun to load; finish that first (%s), or remove the file from it with tsimport files forget",
				item.Name, u.Name, u.Command)}
		}
	}
	return nil
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

func (s *Selector) same(ctx context.Context, item *input.Item, f File) (bool, error) {
	if f.Size != item.Size {
		return false, nil
	}
	hash, err := s.hash(ctx, item)
	return hash == f.Hash, err
}

// knownContent reports whether an input with a new name has a known content, or that of a chosen input named as.
func (s *Selector) knownContent(ctx context.Context, item *input.Item, known bool, chosen []*input.Item) (is bool,
	as string, err error) {
	if !known && len(chosen) == 0 {
		return false, "", nil
	}
	hash, err := s.hash(ctx, item)
	if err != nil {
		return false, "", err
	}
	if f, ok := s.ledger.contents[content{item.Size, hash}]; ok {
		s.see(item, hash, f)
		return true, f.Name, nil
	}
	for _, other := range chosen {
		its, err := s.hash(ctx, other)
		if err != nil {
			return false, "", err
		}
		if its == hash {
			s.see(item, hash, File{Name: NameOf(other)})
			return true, other.Name, nil
		}
	}
	return false, "", nil
}

func (s *Selector) hash(ctx context.Context, item *input.Item) (string, error) {
	if h := s.hashed[item.Name]; h != "" {
		return h, nil
	}
	h, err := hashOf(ctx, item)
	if err == nil {
		s.hashed[item.Name] = h
	}
	return h, err
}

// see records an input with a known content.
func (s *Selector) see(item *input.Item, hash string, as File) {
	f := describe(item, hash)
	f.Loaded, f.Run, f.Changes = as.Loaded, as.Run, as.Changes
	if as.Name != f.Name {
		f.SameAs = as.Name
	} else {
		f.SameAs = as.SameAs
	}
	s.seen = append(s.seen, f)
}

// NameOf returns the name under which an input is recorded. For a local file, it is the absolute path.
func NameOf(item *input.Item) string {
	if item.Local() {
		if full, err := filepath.Abs(item.Name); err == nil {
			return full
		}
	}
	return item.Name
}

func describe(item *input.Item, hash string) File {
	return File{Name: NameOf(item), Size: item.Size, Version: item.Version, Modified: item.Modified.UTC(), Hash: hash}
}

// Same reports whether an input is known to have the content with which the unfinished load began. It returns false for
// inputs of more than headBytes, of which only the beginning is known.
func (s *Selector) Same(ctx context.Context, name string) (bool, error) {
	b := s.ledger.begun[s.o.Job]
	i := slices.IndexFunc(s.items, func(item input.Item) bool { return item.Name == name })
	if b == nil || i < 0 || s.items[i].Size > headBytes {
		return false, nil
	}
	at := slices.Index(b.Names, NameOf(&s.items[i]))
	if at < 0 || at >= len(b.Heads) || b.Heads[at].Size != s.items[i].Size {
		return false, nil
	}
	sum, err := headOf(ctx, &s.items[i])
	return sum == b.Heads[at].Sum, err
}

// NothingNew records known and bad inputs when none is loaded.
func (s *Selector) NothingNew(ctx context.Context, bad []checkpoint.BadInput) error {
	if s.ledger == nil {
		return nil
	}
	now := s.o.Now().UTC()
	noted, gone := s.noted(ctx, bad, now)
	if s.ledger.table == 0 {
		s.seen = nil // no table exists that could have them
	}
	if len(s.seen)+len(noted)+len(gone) == 0 {
		return nil
	}
	return s.ledger.append(ctx, &event{Kind: kindLoaded, Table: s.ledger.table, Job: s.o.Job, Time: now, Files: s.seen,
		Bad: noted, Gone: gone})
}

// Begin records, before the first row is sent, the inputs to be loaded into the table with this creation time.
func (s *Selector) Begin(ctx context.Context, created int64, run string) error {
	if s.ledger == nil {
		return nil
	}
	if created == 0 {
		return &Refused{"--only-new: the service does not say when the table was made, so a table created again could not " +
			"be distinguished from this one; leave --only-new out"}
	}
	s.run = run
	s.ledger.bind(created)
	e := &event{Kind: kindBegun, Table: created, Job: s.o.Job, Command: s.o.Command, Time: s.o.Now().UTC(), Units: s.units}
	for i := range s.items {
		sum, err := headOf(ctx, &s.items[i])
		if err != nil {
			return err
		}
		e.Names, e.Heads = append(e.Names, NameOf(&s.items[i])), append(e.Heads, head{s.items[i].Size, sum})
	}
	return s.ledger.append(ctx, e)
}

// Units returns the units of columns written by earlier loads, such as "timestamp, µs", by name.
func (s *Selector) Units() map[string]string {
	if s.ledger == nil {
		return nil
	}
	return s.ledger.units
}

// KeepUnits sets the units that Begin records.
func (s *Selector) KeepUnits(units map[string]string) { s.units = units }

// Blocks returns records of the blocks hashed since the last call, for Restore.
func (s *Selector) Blocks() (records []byte) {
	for i, t := range s.trees {
		blocks, sums := t.drain()
		records = encodeBlocks(records, i, blocks, sums)
	}
	return records
}

// Restore takes over the hashes that earlier attempts computed for the same inputs.
func (s *Selector) Restore(records []byte) error { return decodeBlocks(records, s.trees) }

// Loaded records that the table has taken the inputs, except bad ones. It hashes blocks that the load did not read.
func (s *Selector) Loaded(ctx context.Context, bad []checkpoint.BadInput) error {
	if s.ledger == nil || s.ledger.table == 0 {
		return nil // no input had a record, and no table was created
	}
	now := s.o.Now().UTC()
	var files []File
	for i := range s.items {
		if slices.ContainsFunc(bad, func(b checkpoint.BadInput) bool { return b.Name == s.items[i].Name }) {
			continue
		}
		hash, err := s.trees[i].complete(ctx, &s.items[i])
		if err != nil {
			return err
		}
		f := describe(&s.items[i], hash)
		f.Changes = s.o.Changes
		f.Loaded, f.Run = now, s.run
		files = append(files, f)
	}
	var works []string
	if len(files) > 0 {
		works = []string{s.o.Command}
	}
	for _, f := range s.seen {
		if f.Run == "" {
			f.Loaded, f.Run = now, s.run
		}
		files = append(files, f)
	}
	noted, gone := s.noted(ctx, bad, now)
	return s.ledger.append(ctx, &event{Kind: kindLoaded, Table: s.ledger.table, Job: s.o.Job, Time: now, Files: files,
		Bad: noted, Gone: gone, Works: works})
}
