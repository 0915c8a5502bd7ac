package writer

import (
	"bytes"
	"cmp"
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Searcher finds and deletes rows of a table with an auto-increment column.
type Searcher interface {
	GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error)
	DeleteRow(*tablestore.DeleteRowRequest) (*tablestore.DeleteRowResponse, error)
}

// AutoIncrement is the workers' shared state for a table with an auto-increment column: how to recognise its rows, and
// each ordering key's highest number, above which rows with lost answers are. It is safe for concurrent use.
type AutoIncrement struct {
	Table  string
	Column int    // the column's position in the key
	Mark   string // attribute that holds the rows' marks; "" means no marks: rows are repeated without a search
	Marker table.Marker
	// LookFirst treats rows of any run of the job as this run's, which continues an earlier load of the same files.
	LookFirst bool
	// Begun is the load's beginning, in ms of the service's clock. Searches end at older rows; 0 means that it is unknown.
	Begun int64
	// Parallel calls do with every number below n, several at once; if nil, the calls are made one by one.
	Parallel func(n int, do func(i int))
	// Earlier describes the rows that an earlier attempt of the run may have sent, or is nil.
	Earlier *Earlier

	// Requests counts read requests, Searched the rows looked up, Found the rows found.
	Requests, Searched, Found atomic.Int64

	searcher Searcher
	column   plainbuffer.Name

	highest highestNumbers
}

// NewAutoIncrement returns the AutoIncrement of a table. mark is the attribute that identifies rows; "" means none.
func NewAutoIncrement(s Searcher, name string, column int, mark string, marker table.Marker) *AutoIncrement {
	return &AutoIncrement{
		Table: name, Column: column, Mark: mark, Marker: marker, searcher: s, column: plainbuffer.NewName(mark),
		highest: highestNumbers{highest: map[string]*list.Element{}, recent: list.New()},
	}
}

// returned notes and returns the number in the key that the service returned for the row; 0 if it cannot be read.
func (n *AutoIncrement) returned(row table.Ref, key []byte) int64 {
	if rows, err := plainbuffer.CheckRows(key); err != nil || rows != 1 {
		return 0
	}
	decoded, err := plainbuffer.Decode(key)
	if err != nil || n.Column >= len(decoded.Key) {
		return 0
	}
	var of []byte
	for _, c := range decoded.Key[:n.Column] {
		of = table.AppendKey(of, c.Value)
	}
	if !bytes.Equal(of, row.Key()) {
		return 0 // it is the key of another row
	}
	number := decoded.Key[n.Column].Value.Int
	if number != 0 {
		n.highest.note(row.Key(), number)
	}
	return number
}

func (n *AutoIncrement) parallel(count int, do func(i int)) {
	if n.Parallel != nil && count > 1 {
		n.Parallel(count, do)
		return
	}
	for i := range count {
		do(i)
	}
}

// missing notes that a row which the previous process may have sent is missing. It reports whether the row was surely
// not sent, because an earlier record of its ordering key is missing too, and a key's records are sent one by one.
func (n *AutoIncrement) missing(r table.Ref) (unsent bool) {
	if !r.Row().Suspect() || n.LookFirst {
		return false
	}
	n.highest.mu.Lock()
	defer n.highest.mu.Unlock()
	h := n.highest.entry(r.Key())
	if !h.missing {
		h.missing, h.missed, h.source = true, r.Number(), r.Block.Split.Ordinal
		return false
	}
	return h.missed != r.Number() || h.source != r.Block.Split.Ordinal
}

// writeOnce sends the rows that no earlier attempt has written, after looking up those that may have been applied.
func (w *Writer) writeOnce(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (Stats, error) {
	fill(outcomes, table.Outcome{Fate: table.Again}) // until their answers are known
	n := w.options.AutoIncrement
	var look []int
	for i := range rows {
		if repeated[i] {
			look = append(look, i)
		}
	}
	found := make([]bool, len(rows))
	stats, err := n.findAll(rows, look, found, outcomes)
	if err != nil {
		return stats, err
	}
	var send []table.Ref
	var places []int
	var again []bool
	for i, r := range rows {
		if !found[i] && outcomes[i].Code == "" && outcomes[i].Message == "" {
			send, places, again = append(send, r), append(places, i), append(again, repeated[i])
		}
	}
	if len(send) == 0 {
		return stats, nil
	}
	some := make([]table.Outcome, len(send))
	more, err := w.write(send, again, some, false)
	stats.add(more)
	for k, i := range places {
		from, unsent := outcomes[i].From, outcomes[i].Unsent
		outcomes[i] = some[k]
		outcomes[i].From, outcomes[i].Unsent = from, unsent
	}
	return stats, err
}

// findAll looks up the rows at the given places, many concurrently.
func (n *AutoIncrement) findAll(rows []table.Ref, places []int, found []bool, outcomes []table.Outcome) (stats Stats,
	err error) {
	if len(places) == 0 {
		return stats, nil
	}
	if n.Earlier != nil {
		n.Earlier.read(n, rows)
	}
	var mu sync.Mutex
	n.parallel(len(places), func(k int) {
		i := places[k]
		mu.Lock()
		failed := err != nil
		mu.Unlock()
		if failed {
			return
		}
		was, findErr := n.find(rows[i], &outcomes[i])
		mu.Lock()
		defer mu.Unlock()
		err = cmp.Or(err, findErr)
		found[i] = was
		stats.Searched++
		n.Searched.Add(1)
		if was {
			stats.Found++
			n.Found.Add(1)
		}
	})
	return stats, err
}

// find looks up a row that an earlier attempt may have written. If it is found, the outcome is Written; if it could not
// be looked up, the outcome says why; if it is missing, only From and Unsent are set. An error means that the run ends.
func (n *AutoIncrement) find(r table.Ref, o *table.Outcome) (found bool, err error) {
	key, err := plainbuffer.Decode(r.Body())
	if err != nil {
		return false, fmt.Errorf("look up a row of table %s: %w", n.Table, err)
	}
	mark := string(n.Marker.Append(nil, r))
	want, _ := table.ParseMark(mark)
	if number, copies, known := n.Earlier.lookUp(want, r.Row().Suspect()); known {
		if number == 0 {
			o.Unsent = n.missing(r)
			return false, nil
		}
		n.highest.note(r.Key(), number)
		*o = table.Outcome{Fate: table.Written, Number: number, Found: copies == 1}
		return true, nil
	}
	// Another process's row may have a lower number than this process's, so the search goes down to the first number.
	from := int64(0)
	if !r.Row().Suspect() && !n.LookFirst {
		from = n.highest.from(r.Key())
	}
	number := int64(0)
	err = n.search(key.Key, from, firstPage, func(m marked) (more bool) {
		if n.isOf(mark, m.mark) {
			number = m.number
			return false
		}
		return n.LookFirst || !n.older(m) && !n.before(m, want)
	})
	if err != nil {
		return false, n.unknown(err, o)
	}
	o.From = from
	if number == 0 {
		o.Unsent = n.missing(r)
		return false, nil
	}
	n.highest.note(r.Key(), number)
	*o = table.Outcome{Fate: table.Written, Number: number, From: from, Found: true}
	return true, nil
}

// isOf reports whether the mark has belongs to the row that this load marks with want.
func (n *AutoIncrement) isOf(want, has string) bool {
	if want == has || !n.LookFirst {
		return want == has
	}
	w, _ := table.ParseMark(want)
	h, ok := table.ParseMark(has)
	return ok && w.SameRecord(h)
}

// before reports whether a row is of an earlier record of this run. A key's rows are written in order, so then the
// wanted row has no lower number. If a late attempt broke that order, it is sent again, and the sweep deletes a copy.
func (n *AutoIncrement) before(m marked, want table.Marked) bool {
	is, ok := table.ParseMark(m.mark)
	return ok && is.Job == want.Job && is.Run == want.Run && (is.Source < want.Source || is.Source == want.Source &&
		is.Record < want.Record)
}

// unknown sets the outcome of a row that could not be looked up. The row was not sent, so this can be tried again.
func (n *AutoIncrement) unknown(err error, o *table.Outcome) error {
	o.Code, o.Message = errorText(err)
	switch client.Classify(err) {
	case client.Unavailable:
		o.Unavailable = client.NotServing(err)
	case client.Throttled, client.Ambiguous, client.Unrecognized:
	default:
		return fmt.Errorf("look up a row that may have been written: %w", client.Needed("GetRange", n.Table, err))
	}
	return nil
}
