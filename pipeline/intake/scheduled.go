package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// Order matters only within a key. Where it is faster, consecutive sources are read by a schedule, with random access,
// so that a sorted file spreads over all lanes. The schedule is stored before its first row; a resumed load follows it.

// Scheduling says when sources are read by a schedule.
type Scheduling struct {
	When When
	Rows int // approximate number of rows in a section; 0 means sectionRows
	// SwitchAfter is the number of splits read in order before the rest is scheduled; 0 decides by the keys.
	SwitchAfter int
	// Kept holds the schedules of earlier attempts, which are always followed.
	Kept []*readorder.Schedule
	// Keep stores the schedules before the first row that follows them.
	Keep func([]*readorder.Schedule) error
}

// When says when a schedule is made.
type When uint8

const (
	Never      When = iota
	WhenItPays      // if the input is large and neighbouring records have neighbouring keys
	Always          // if it can be made
)

func (s *Scheduling) rows() int { return cmp.Or(s.Rows, sectionRows) }

// Follow makes Run read by schedules. Call it before Run.
func (f *Flow) Follow(s Scheduling) { f.scheduling = s }

// Sections returns the number of sections of the schedules followed. Any goroutine may call it.
func (f *Flow) Sections() int { return int(f.sections.Load()) }

// Limits for making a schedule.
const (
	minScheduledBytes = 256 << 10
	maxScheduled      = 128 // maximum number of sources open at once
)

// schedules returns the schedules to follow, by their first source.
func (f *Flow) schedules(ctx context.Context, sources []*plan.Source) (map[int]*readorder.Schedule, error) {
	s := &f.scheduling
	all := s.Kept
	if len(all) == 0 && s.When != Never && s.SwitchAfter == 0 && f.resumed == nil {
		for _, some := range f.divisible(sources) {
			made, err := f.schedule(ctx, some)
			if ctx.Err() != nil {
				return nil, nil
			}
			if err != nil {
				// Reading in order will reach the same place and report the error, after loading earlier records.
				continue
			}
			all = append(all, made)
		}
		if len(all) > 0 && s.Keep != nil {
			if err := s.Keep(all); err != nil {
				return nil, err
			}
		}
	}
	f.followed = all
	byFirst := map[int]*readorder.Schedule{}
	for _, one := range all {
		byFirst[one.Source] = one
		f.sections.Add(int64(len(one.Sections)))
	}
	return byFirst, nil
}

// divisible returns the sources for which schedules may be made, in groups of adjacent ones.
func (f *Flow) divisible(sources []*plan.Source) (groups [][]*plan.Source) {
	for from := 0; from < len(sources); from++ {
		to := from
		size := int64(0)
		for to < len(sources) && to-from < maxScheduled && divisible(sources[to]) {
			size += sources[to].About().Bytes
			to++
		}
		if to == from {
			continue
		}
		if f.scheduling.When == Always || size >= minScheduledBytes {
			groups = append(groups, sources[from:to])
		}
		from = to - 1
	}
	if f.plan.Request.Records > 0 { // the limit counts records from the first source on
		if len(groups) == 0 || groups[0][0].Ordinal > 0 {
			return nil
		}
		groups = groups[:1]
	}
	return groups
}

func divisible(s *plan.Source) bool { return s.Anywhere() && random(s).Divisible() }

// random returns a source that, according to the plan, has random access.
func random(s *plan.Source) source.Random { return s.Source.(source.Random) }

// arrange returns the indices of the sections in reading order. The first head sections have already been read.
func (f *Flow) arrange(sections []readorder.Section, head int) []int32 {
	if f.plan.Request.Order == plan.OrderNone {
		return readorder.Spread(sections, head)
	}
	return readorder.Order(sections, head)
}

func (f *Flow) schedule(ctx context.Context, sources []*plan.Source) (*readorder.Schedule, error) {
	_, sections, err := f.firstPass(ctx, sources, pass{})
	if err != nil {
		return nil, err
	}
	if f.scheduling.When == WhenItPays && (len(sections) < tellingSections || !worthwhile(sections)) {
		return nil, errFileOrder
	}
	last := cutAfter(&sections, f.plan.Request.Records)
	made := readorder.Make(sources[0].Ordinal, len(sources), sections, f.arrange(sections, 0))
	if last != nil {
		last.Keys = nil
		made.Sections = append(made.Sections, *last)
	}
	if len(made.Sections) == 0 {
		return nil, errFileOrder
	}
	return made, nil
}

// cutAfter keeps the sections before the one with the n-th record and returns that one, to be read last; 0 keeps all.
func cutAfter(sections *[]readorder.Section, n int64) (last *readorder.Section) {
	if n <= 0 {
		return nil
	}
	before := int64(0)
	for i := range *sections {
		s := &(*sections)[i]
		if before += s.Records; before >= n {
			*sections = (*sections)[:i]
			return s
		}
	}
	return nil
}

// readByTurns reads the sources by their schedules, or in order. It reports whether everything was passed on.
func (f *Flow) readByTurns(ctx context.Context, sources []*plan.Source) (complete bool, err error) {
	schedules, err := f.schedules(ctx, sources)
	if ctx.Err() != nil {
		return false, nil
	}
	if err != nil {
		return send(ctx, f.splits, Handed{Err: err}), nil
	}
	for from := 0; from < len(sources); {
		var failed bool
		if s := schedules[sources[from].Ordinal]; s != nil {
			if next, skip := f.beginsAt(s); !skip {
				complete, failed, err = f.readScheduled(ctx, s, sources[from:from+s.Sources], next)
			} else {
				complete = true
			}
			from += s.Sources
		} else {
			to := from + 1
			for to < len(sources) && schedules[sources[to].Ordinal] == nil {
				to++
			}
			var n int
			n, complete, failed, err = f.readUnscheduled(ctx, sources[from:to])
			from += n
		}
		if err != nil || !complete || failed {
			return complete, err
		}
	}
	return true, nil
}

// readUnscheduled reads sources in order and, if that becomes worthwhile, continues by a schedule. It returns how many
// sources it has read; the others remain to be read in the same way.
func (f *Flow) readUnscheduled(ctx context.Context, sources []*plan.Source) (n int, complete, failed bool, err error) {
	w := f.watching(sources)
	if w != nil {
		sources = beforeStream(sources)
		w.sources = sources
	}
	complete, failed, err = f.readInOrder(ctx, sources, w)
	switch n, wrong := f.afterAside(sources); {
	case n == 0 || err != nil || ctx.Err() != nil:
	case wrong != nil:
		return n, send(ctx, f.splits, Handed{Err: wrong}), true, nil
	default:
		return n, true, false, nil
	}
	if w == nil || w.source == nil || err != nil || ctx.Err() != nil {
		return len(sources), complete, failed, err
	}
	n = slices.Index(sources, w.source)
	s, err := f.switchOver(ctx, w, sources[n:])
	switch {
	case ctx.Err() != nil:
		return n, false, false, nil
	case err != nil:
		return n, send(ctx, f.splits, Handed{Err: err}), true, nil
	case s == nil:
		return n, true, false, nil
	}
	f.sections.Add(int64(len(s.Sections)))
	complete, failed, err = f.readScheduled(ctx, s, sources[n:n+s.Sources], turnAt(s, w.place.Record))
	return n + s.Sources, complete, failed, err
}

func (f *Flow) readScheduled(ctx context.Context, s *readorder.Schedule, sources []*plan.Source, next turn) (complete,
	failed bool, err error) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	ahead := plan.QueueAhead * f.plan.Request.Read.Workers()
	out := stream{work: make(chan *job), splits: make(chan *job, ahead),
		budget: newByteBudget(f.plan.Shares().ReadAhead - s.Held())}
	turns := &turns{flow: f, schedule: s, sources: sources, opened: make([]bool, len(sources))}
	group.Go(func() error { return turns.feed(ctx, next, out) })
	f.parsers(group, func(p *parser) error {
		p.anyOrder = true
		return p.run(ctx, out.work, turns.parse(p))
	})
	group.Go(func() error {
		defer cancel() // as in readInOrder
		complete, failed = f.handOver(ctx, out.splits, out.budget, nil)
		return nil
	})
	err = group.Wait()
	if ended := turns.end(complete && !failed && err == nil); ended != nil && outer.Err() == nil {
		return send(outer, f.splits, Handed{Err: ended}), true, err
	}
	return complete, failed, err
}

type turns struct {
	flow     *Flow
	schedule *readorder.Schedule
	sources  []*plan.Source
	opened   []bool
}

// turn is the place in a schedule where a section begins: its number, and the number of records before it.
type turn struct {
	section int
	records int64
}

// beginsAt returns the first section to read. skip means that all sections are final.
func (f *Flow) beginsAt(s *readorder.Schedule) (next turn, skip bool) {
	if f.resumed == nil {
		return turn{}, false
	}
	from, _, skip := f.resumed.Begin(s.Source)
	return turnAt(s, from.Record), skip
}

// turnAt returns the turn of the section with the given record of a schedule.
func turnAt(s *readorder.Schedule, record int64) (at turn) {
	for at.section < len(s.Sections) && at.records+s.Sections[at.section].Records <= record {
		at.records += s.Sections[at.section].Records
		at.section++
	}
	return at
}

// feed hands the sections to the parsers and, in the same order, to the hand-over.
func (t *turns) feed(ctx context.Context, next turn, out stream) error {
	sections := t.schedule.Sections
	rows := int64(t.flow.plan.Shares().SplitLimit(t.flow.plan.Request.Read.Workers()))
	for i := next.section; i < len(sections); i++ {
		one := &sections[i]
		of := one.Source - t.schedule.Source
		j := newJob(&job{source: t.sources[of]}, false, source.Split{}, rows+one.Bytes, out.budget)
		j.section, j.at = one, table.Position{Source: t.schedule.Source, Record: next.records}
		next.records += one.Records
		if t.flow.passes(j, j.at) {
			continue
		}
		if !t.opened[of] {
			t.opened[of] = true
			if err := random(j.source).Reopen(); err != nil {
				j.err = changed(j, err)
			}
		}
		if j.err == nil && !out.budget.take(ctx, j.bytes) {
			return nil
		}
		if !send(ctx, out.splits, j) || j.err == nil && !send(ctx, out.work, j) {
			return nil
		}
		if j.err != nil {
			break
		}
	}
	close(out.work)
	close(out.splits)
	return nil
}

// end closes the sources. whole means that every section was read; end then fails if a source has changed meanwhile.
func (t *turns) end(whole bool) (err error) {
	for i, s := range t.sources {
		switch {
		case !t.opened[i]:
		case whole && err == nil && !t.flow.aside.has(s.Ordinal):
			err = random(s).Finished()
		default:
			_ = s.Close() // reading has already failed
		}
	}
	return err
}

// parse returns the function with which a parser processes the sections.
func (t *turns) parse(p *parser) func(context.Context, *job) {
	return func(ctx context.Context, j *job) {
		p.handParts(ctx, j, func(emit func(*Parsed, bool) bool) error {
			splits, err := p.loadSection(ctx, j)
			if err != nil {
				return changed(j, err)
			}
			for i, split := range splits {
				inside := i > 0
				err := p.parts(ctx, j.source, split, j.turn, func(made *Parsed, last bool) bool {
					made.Inside, inside = inside, true
					return emit(made, last && i == len(splits)-1)
				})
				if err != nil {
					return changed(j, err)
				}
			}
			return nil
		})
	}
}

// errChanged is the error of a section that has changed.
var errChanged = errors.New("they have changed since the load first read them")

// loadSection returns the section of a job as splits, or an error if it has changed.
func (p *parser) loadSection(ctx context.Context, j *job) ([]source.Split, error) {
	s := j.section
	splits, err := random(j.source).LoadStretch(source.Stretch{Record: s.Record, Records: s.Records, Offset: s.Offset,
		Bytes: s.Bytes})
	if err != nil {
		return nil, err
	}
	var sum readorder.Sum
	text := slices.ContainsFunc(splits, func(sp source.Split) bool { return sp.Data != nil })
	for _, split := range splits {
		if text {
			sum.Write(split.Data)
			continue
		}
		sp, err := p.forKeys(j.source)
		if err != nil {
			return nil, err
		}
		before := sum
		var buffer []byte
		_, err = p.inTurn(ctx, sp, j.turn, func() (*Parsed, error) {
			sum = before
			_, _, err := sp.parser.Parse(split, func(rec *record.Record) {
				key := sp.values.appendKey(buffer[:0], rec)
				sumKey(&sum, key)
				if key != nil {
					buffer = key
				}
			})
			return nil, err
		})
		if err != nil {
			return nil, err
		}
	}
	if sum != s.Sum {
		return nil, errChanged
	}
	return splits, nil
}

// changed adds to an error which records of the schedule are concerned.
func changed(j *job, err error) error {
	s := j.section
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("read %s: records %d to %d: %w; later records may be loaded, because the file is read out of order",
		j.source.Name, s.Record+1, s.Record+s.Records, err)
}
