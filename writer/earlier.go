package writer

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Earlier finds the rows that an earlier attempt of a run may have written. Looking them up one by one takes a request
// each; reading the whole table, 5,000 marks per request, is often cheaper. So the table is read, if that takes only a
// fraction of the requests. The result counts only if it covers the whole table.
type Earlier struct {
	// Rows is the number of rows that the earlier attempt may have sent without learning that they were written.
	Rows int64
	// Open reports whether a record is one of these rows.
	Open func(source int, record int64) bool
	// Bounds, if not nil, returns values of the partition key that divide the table into ranges to read in parallel.
	Bounds func() []table.Value

	reading sync.WaitGroup // other workers wait for it while one reads the table
	mu      sync.Mutex
	tried   bool
	written map[table.Marked]earlierRow // nil unless all of the table was read
	asked   map[table.Marked]bool       // missing rows that this attempt has sent since
}

type earlierRow struct {
	number int64 // lowest number of its copies
	copies int
}

const (
	// earlierRowsLeast is the number of rows from which on the table is read: fewer are looked up one by one.
	earlierRowsLeast = 256
	// earlierRowsMost limits the memory for the result: about 100 bytes per row.
	earlierRowsMost = 500_000
	// A table is read with at most one request per rowsPerPage rows, plus pagesMore.
	rowsPerPage = 25
	pagesMore   = 5
	// pageTries is the number of tries for a page.
	pageTries = 3
	// A table is read in one range per rowsPerRange rows, at most earlierRanges in parallel.
	rowsPerRange  = 500
	earlierRanges = 32
)

// read reads the table once, if begin allows it. The keys of the sought rows help to divide it.
func (p *Earlier) read(n *AutoIncrement, rows []table.Ref) {
	if !p.begin(rows) {
		p.reading.Wait()
		return
	}
	defer p.reading.Done()
	written := map[table.Marked]earlierRow{}
	bounds, names := p.ranges(rows)
	var mu sync.Mutex
	all := n.readAll(names, bounds, min(p.Rows, earlierRowsMost), func(m marked) (more bool) {
		mark, ok := table.ParseMark(m.mark)
		if !ok || mark.Job != n.Marker.Job || mark.Run != n.Marker.Run || !p.Open(mark.Source, mark.Record) {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		was, again := written[mark]
		if again {
			m.number = min(m.number, was.number)
		}
		written[mark] = earlierRow{m.number, was.copies + 1}
		return len(written) <= earlierRowsMost
	})
	if all {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.written, p.asked = written, map[table.Marked]bool{}
	}
}

func (p *Earlier) begin(rows []table.Ref) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tried || p.Rows < earlierRowsLeast || !slices.ContainsFunc(rows,
		func(r table.Ref) bool { return r.Row().Suspect() }) {
		return false
	}
	p.tried = true
	p.reading.Add(1)
	return true
}

// lookUp returns a suspect row's number, 0 if missing, and its copies. If known is false, the table must be searched.
func (p *Earlier) lookUp(want table.Marked, suspect bool) (number int64, copies int, known bool) {
	if p == nil || !suspect {
		return 0, 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written == nil || p.asked[want] {
		return 0, 0, false
	}
	row, ok := p.written[want]
	if !ok {
		p.asked[want] = true // it is about to be sent
	}
	return row.number, row.copies, true
}

// readAll reads the ranges in parallel, calls each with their marked rows, and reports whether it read all of them. It
// gives up if that takes too many requests for the number of rows, or if each returns false.
func (n *AutoIncrement) readAll(key []string, bounds []table.Value, rows int64,
	each func(marked) (more bool)) (all bool) {
	left := atomic.Int64{}
	left.Store(rows/rowsPerPage + pagesMore + int64(len(bounds)))
	var failed atomic.Bool
	n.parallel(len(bounds)+1, func(i int) {
		c := n.criteria(tablestore.FORWARD)
		c.Limit = maxPage
		bound(c.StartPrimaryKey, key, bounds, i-1, (*tablestore.PrimaryKey).AddPrimaryKeyColumnWithMinValue)
		bound(c.EndPrimaryKey, key, bounds, i, (*tablestore.PrimaryKey).AddPrimaryKeyColumnWithMaxValue)
		for !failed.Load() {
			page, ok := n.pageWithin(c, &left)
			if !ok || !n.each(page, each) {
				failed.Store(true)
				return
			}
			if !continues(c, page) {
				return
			}
		}
	})
	return !failed.Load()
}

// bound completes the key at bounds[i], between two ranges, or the first or last key of the table if i is out of range.
func bound(key *tablestore.PrimaryKey, names []string, bounds []table.Value, i int,
	end func(*tablestore.PrimaryKey, string)) {
	for k, name := range names {
		switch inside := i >= 0 && i < len(bounds); {
		case inside && k == 0:
			key.AddPrimaryKeyColumn(name, client.SDKValue(bounds[i]))
		case inside:
			key.AddPrimaryKeyColumnWithMinValue(name)
		default:
			end(key, name)
		}
	}
}

// pageWithin reads a page, with several tries, while requests are left.
func (n *AutoIncrement) pageWithin(c *tablestore.RangeRowQueryCriteria,
	left *atomic.Int64) (*tablestore.GetRangeResponse, bool) {
	for range pageTries {
		if left.Add(-1) < 0 {
			return nil, false
		}
		if page, err := n.page(c); err == nil {
			return page, true
		}
	}
	return nil, false
}

// ranges returns values of the partition key that divide the table, and the names of the key's columns.
func (p *Earlier) ranges(rows []table.Ref) (bounds []table.Value, names []string) {
	if p.Bounds != nil {
		bounds = p.Bounds()
	}
	for i, r := range rows {
		row, err := plainbuffer.Decode(r.Body())
		if err != nil {
			continue // sending the row reports the error
		}
		bounds = append(bounds, row.Key[0].Value)
		if i == 0 {
			names = namesOf(row.Key)
		}
	}
	return divide(bounds, p.Rows), names
}

func namesOf(key []plainbuffer.Cell) (names []string) {
	for _, c := range key {
		names = append(names, c.Name)
	}
	return names
}

// divide sorts values of the partition key, and drops some of them if there are too many for the number of rows.
func divide(bounds []table.Value, rows int64) []table.Value {
	bounds = table.SortDistinct(bounds)
	most := int(min(rows/rowsPerRange, earlierRanges-1))
	if len(bounds) <= most {
		return bounds
	}
	some := make([]table.Value, most)
	for i := range some {
		some[i] = bounds[i*len(bounds)/most]
	}
	return some
}
