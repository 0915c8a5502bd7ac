package advise

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Config configures Run. Zero fields take their defaults.
type Config struct {
	Input      Input
	Candidates []string // columns, or splices A+B; nil means all columns
	Partitions int      // partitions of the table; default 32
	Rate       int      // live rows per second, also the table's capacity; default 1000 per partition
	ArrivalBy  string   // column with the arrival order; "" finds one
	Growth     float64  // future rows per present row; default 1
	Memory     int64    // bytes; default 1 GiB
}

const (
	DefaultPartitions = 32
	DefaultRate       = 32000
	defaultMemory     = 1 << 30
)

// UsageError reports invalid arguments.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usagef(format string, a ...any) error { return &UsageError{fmt.Sprintf(format, a...)} }

// maxStored limits the number of columns that are analysed in detail: the first ones, and those requested.
const maxStored = 24

type survey struct {
	Config
	columns []*column
	rows    int64
	bytes   int64 // size of all rows, names and values
	kept    *kept
	report  *Report
	arrival *column   // nil means input order
	order   []int32   // kept rows by arrival; nil means input order
	own     []*column // columns of the source's own key; nil if it has none
	live    bool      // a load accepts only keys made from own

	lies      *lies // distribution of a table of the service, else nil
	first     int   // index in columns of the table's partition key
	ordinal   int   // place in kept of the rows' numbers, if lies is set
	written   *column
	unordered bool // the arrival order is unknown
}

// Run reads the inputs once and returns the report.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.Partitions = cmp.Or(c.Partitions, DefaultPartitions)
	c.Rate = cmp.Or(c.Rate, c.Partitions*(DefaultRate/DefaultPartitions))
	c.Growth = cmp.Or(c.Growth, 1)
	c.Memory = cmp.Or(c.Memory, defaultMemory)
	s := &survey{Config: c, report: &Report{Partitions: c.Partitions, Rate: c.Rate, Growth: c.Growth,
		Candidates: []*Candidate{}, Notes: []string{}}}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	if s.rows == 0 {
		return nil, usagef("a load would accept no row of %s%s", strings.Join(c.Input.Args, ", "), s.firstReject())
	}
	s.findArrival()
	if err := s.judgeAll(ctx); err != nil {
		return nil, err
	}
	s.present()
	s.design()
	s.commands()
	return s.report, nil
}

// columnBudget returns the memory for a column's sample, and later for its most frequent values.
func (s *survey) columnBudget(columns int) int64 { return s.Memory / 8 / int64(max(columns, 1)) }

func (s *survey) firstReject() string {
	if s.report.FirstReject == "" {
		return ""
	}
	return "; the first is refused: " + s.report.FirstReject
}

// onlyKey rates only the key columns of a live source, unless others are requested, because loads need its key.
func (s *survey) onlyKey(in *rows) {
	about := in.sources[0].About()
	if !about.Live || s.Candidates != nil {
		return
	}
	for _, k := range about.Unique {
		s.Candidates = append(s.Candidates, k.Name)
	}
	s.note("only the primary key of the source is rated (%s): a load from a database makes its key from it; --candidates "+
		"rates other columns, for a load from files", strings.Join(s.Candidates, ", "))
}

func (s *survey) findOwn(in *rows) {
	about := in.sources[0].About()
	s.live = about.Live
	names := make([]string, 0, len(about.Unique))
	for _, k := range about.Unique {
		names = append(names, k.Name)
	}
	if len(names) == 0 && about.Declared != nil {
		names = about.Declared.Key
	}
	for _, name := range names {
		if c := s.find(name); c != nil {
			s.own = append(s.own, c)
		}
	}
}

// mayKey reports whether a load accepts a key made from the columns.
func (s *survey) mayKey(parts ...*column) bool {
	return !s.live || !slices.ContainsFunc(parts, func(c *column) bool { return !slices.Contains(s.own, c) })
}

func (s *survey) read(ctx context.Context) error {
	in, err := openRows(ctx, s.Input, func(i, columns int, d *record.Datum) {
		for len(s.columns) <= i {
			s.columns = append(s.columns, newColumn(""))
		}
		s.columns[i].sample(d, s.columnBudget(columns))
	})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return usagef("%v", err)
	}
	defer in.close()
	s.onlyKey(in)
	for i := range in.columns {
		if i >= len(s.columns) {
			s.columns = append(s.columns, newColumn(""))
		}
		s.columns[i].name = in.columns[i].Name
	}
	s.findOwn(in)
	for i, c := range s.columns {
		c.settle(in.columns[i].Type, s.columnBudget(len(s.columns)))
	}
	if last := len(s.columns) - 1; s.Input.Written != "" && s.columns[last].name == s.Input.Written {
		s.columns, s.written, s.lies = s.columns[:last], s.columns[last], newLies(s.Input.Bounds)
		s.written.settle(table.Integer, 0)
		s.first = slices.Index(s.columns, s.own[0])
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	s.kept = newKept(s.places(), s.Memory/2)
	for _, c := range s.columns {
		c.endSample()
	}
	var sampling gaps
	err = in.each(ctx, func(values []table.Value) { s.see(values, sampling.next()) })
	r := s.report
	for _, src := range in.sources {
		r.Files = append(r.Files, src.About().Name)
	}
	r.Rows, r.Rejected, r.FirstReject = s.rows, in.rejected, in.reject
	r.RowsKept, r.Notes = s.kept.rows, append(r.Notes, in.warnings...)
	if s.rows > 0 {
		r.RowBytes = float64(s.bytes) / float64(s.rows)
	}
	if !s.kept.all() {
		s.note("capacity shares, monotony and groups of columns are based on %d of %d rows, in blocks of %d consecutive "+
			"rows, 1 in %d; distinct and hottest values on all", s.kept.rows, s.rows, keptBlock, s.kept.stride)
	}
	return err
}

func (s *survey) see(values []table.Value, count bool) {
	s.rows++
	var keep *kept
	if s.kept.next() {
		keep = s.kept
	}
	size := int64(0)
	for i, c := range s.columns {
		v := &values[i]
		c.see(v, keep, count)
		if v.Type != table.Null {
			size += int64(v.Size() + len(c.name))
		}
	}
	s.bytes += size
	if s.lies == nil {
		return
	}
	s.lies.add(values[s.first], size)
	s.written.see(&values[len(s.columns)], keep, false)
	if keep != nil {
		keep.add(s.ordinal, uint64(s.rows-1))
	}
}

// gaps selects rows for expensive statistics: at first all, and later in a long input one in eight at random.
type gaps struct {
	seen, random uint64
	skip         uint64
}

func (g *gaps) next() bool {
	g.seen++
	if g.seen <= 1<<16 {
		return true
	}
	if g.skip > 0 {
		g.skip--
		return false
	}
	// A fixed gap would always select the same values of a periodic input.
	g.random = g.random*6364136223846793005 + 1442695040888963407
	g.skip = g.random >> 60 // 7.5 on average
	return true
}

func (s *survey) places() int {
	n, stored := 0, 0
	take := func(c *column) {
		if c.code >= 0 || c.floating() {
			return
		}
		stored++
		c.code = n
		n++
		if !c.integer {
			c.hash = n
			n++
			if c.clock.layout != "" {
				c.time = n
				n++
			}
		}
	}
	if s.lies != nil {
		s.written.code, s.ordinal = 0, 1
		n = 2
	}
	for _, c := range s.columns {
		if c.name == s.ArrivalBy || slices.ContainsFunc(s.Candidates,
			func(name string) bool { return slices.Contains(strings.Split(name, "+"), c.name) }) {
			take(c)
		}
	}
	for _, c := range s.columns {
		if stored < maxStored {
			take(c)
		}
	}
	return n
}

func (s *survey) find(name string) *column {
	for _, c := range s.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

// split returns the columns that a candidate's name joins.
func (s *survey) split(name string) []*column {
	if c := s.find(name); c != nil {
		return []*column{c}
	}
	var parts []*column
	for _, one := range strings.Split(name, "+") {
		c := s.find(one)
		if c == nil {
			return nil
		}
		parts = append(parts, c)
	}
	return parts
}

func (s *survey) checkNames() error {
	shown := namesOf(s.columns[:min(len(s.columns), 20)])
	if s.ArrivalBy != "" {
		c := s.find(s.ArrivalBy)
		if c == nil {
			return usagef("--arrival-by names column %q, which the input does not have (it has %q)", s.ArrivalBy, shown)
		}
		if c.floating() {
			return usagef("--arrival-by %s: a %s column has no useful order; name a time or integer column", c.name, c.own)
		}
	}
	for _, name := range s.Candidates {
		parts := s.split(name)
		for i, c := range parts {
			if slices.Contains(parts[:i], c) {
				return usagef("--candidates %s: names column %s twice", name, c.name)
			}
		}
		if parts == nil {
			return usagef("--candidates names %q, which is not in the input (it has %q; join several with +)", name, shown)
		}
	}
	return nil
}

// findArrival finds the order of live rows: that of the user's column, the steadiest time column, or the input.
func (s *survey) findArrival() {
	a := &s.report.Arrival
	defer func() {
		if s.arrival != nil {
			place := s.arrival.code
			if s.arrival.time >= 0 {
				place = s.arrival.time
			}
			a.Column = s.arrival.name
			s.order = s.kept.order(place)
		}
	}()
	if s.ArrivalBy != "" {
		s.arrival, a.How = s.find(s.ArrivalBy), "named with --arrival-by"
		return
	}
	best := 0.0
	for i, c := range s.columns {
		if !c.clock.told || c.code < 0 || c.nulls*100 > s.rows || c.rows == 0 {
			continue
		}
		place := c.code
		if c.time >= 0 {
			place = c.time
		}
		up, down := s.kept.trend(place, nil)
		score := 1 + up - down - float64(i)/1000 // prefers the first of equal columns
		if c.clock.day {
			score -= 1.5 // days do not order the many rows of a day
		}
		if arrivalName.MatchString(c.name) {
			score += 0.5
		}
		if s.arrival == nil || score > best {
			best, s.arrival = score, c
		}
	}
	if s.arrival == nil && s.lies != nil {
		s.byWriting()
		return
	}
	if s.arrival == nil {
		a.How = "no column has times, so rows are assumed to arrive in input order; name a column with --arrival-by if not"
		for _, c := range s.columns {
			if c.code >= 0 && s.monotonic(c) != "no" && s.distinctOf(c) > int64(s.Partitions) {
				s.note("the input is in the order of %s: if it was sorted for export and rows arrived differently, verdicts on "+
					"live traffic are too strict; name the order of arrival with --arrival-by", c.name)
				break
			}
		}
		return
	}
	a.How = "detected: it holds times"
	if up, _ := s.kept.trend(s.arrival.code, nil); up > 0.99 {
		a.How += ", and the input is in their order"
	} else {
		a.How += ", and the input has another order"
	}
}

// byWriting orders the rows of a table, which are read in key order, by write time.
func (s *survey) byWriting() {
	w, a := s.written, &s.report.Arrival
	s.order = s.kept.mixed(w.code)
	span := time.Duration(max(0, w.high-w.low)) * time.Millisecond
	if s.unordered = w.nulls*100 > s.rows || span == 0; s.unordered {
		a.How = "unknown from columns and write times, so assumed to be random; name a column with --arrival-by"
		return
	}
	a.How = fmt.Sprintf("the write times of the newest cells, over %v; if a load or a copy wrote them, they have its "+
		"order: name a column with --arrival-by", span.Round(time.Second/10))
}
