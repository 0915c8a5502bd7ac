package writer

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/client"
	"tsimport/plainbuffer"
	"tsimport/table"
)

// Searcher is what the rows of a table with an auto-increment column are looked for and deleted with.
type Searcher interface {
	GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error)
	DeleteRow(*tablestore.DeleteRowRequest) (*tablestore.DeleteRowResponse, error)
}

// Numbers is what the workers of a load know together about a table with an auto-increment column: how its rows are
// recognised, and the highest number of each ordering key that the service has returned. Rows of one ordering key are
// written one after the other, so a row whose attempt has an unknown outcome can only have a higher one. It is safe for
// concurrent use.
type Numbers struct {
	Table  string
	Column int    // of the key
	Mark   string // the attribute with the rows' marks; "" leaves rows without, and repeats them blindly
	Job    string // which marks begin with
	// Since is when the load began, in milliseconds, with room for clocks that differ: a row whose mark is older is one that an
	// earlier load of the same files has written. 0 takes all for this load's.
	Since int64

	searcher Searcher
	column   plainbuffer.Name

	mu      sync.Mutex
	highest map[string]*list.Element
	recent  *list.List // of highestNumber, the one used last in front
	bytes   int
}

type highestNumber struct {
	key    string
	number int64
}

// maxHighestBytes bounds the memory of what is known of ordering keys: about a hundred thousand of the usual length. For one
// that is forgotten, a search begins at its first row.
const (
	maxHighestBytes  = 16 << 20
	highestNumberMin = 128
)

// NewNumbers makes Numbers. Mark is the attribute that rows are recognised by, "" for none, job what their marks begin with.
func NewNumbers(s Searcher, name string, column int, mark, job string) *Numbers {
	return &Numbers{
		Table: name, Column: column, Mark: mark, Job: job, searcher: s, column: plainbuffer.NewName(mark),
		highest: map[string]*list.Element{}, recent: list.New(),
	}
}

// returned notes the number in the key that the service has returned for the row, and returns it; 0 if it cannot be read.
func (n *Numbers) returned(row table.Ref, key []byte) int64 {
	if rows, err := plainbuffer.CheckRows(key); err != nil || rows != 1 {
		return 0
	}
	decoded, err := plainbuffer.Decode(key)
	if err != nil || n.Column >= len(decoded.Key) {
		return 0
	}
	number := decoded.Key[n.Column].Value.Int
	if number != 0 {
		n.note(row.Key(), number)
	}
	return number
}

// note remembers a number of an ordering key.
func (n *Numbers) note(key []byte, number int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.highest[string(key)]; e != nil {
		h := e.Value.(*highestNumber)
		h.number = max(h.number, number)
		n.recent.MoveToFront(e)
		return
	}
	h := &highestNumber{string(key), number}
	n.highest[h.key] = n.recent.PushFront(h)
	n.bytes += len(h.key) + highestNumberMin
	for n.bytes > maxHighestBytes {
		old := n.recent.Remove(n.recent.Back()).(*highestNumber)
		delete(n.highest, old.key)
		n.bytes -= len(old.key) + highestNumberMin
	}
}

// from is what the number of the key's next row cannot be below; 0 is unknown.
func (n *Numbers) from(key []byte) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.highest[string(key)]; e != nil {
		return e.Value.(*highestNumber).number + 1
	}
	return 0
}

// writeOnce sends the rows but those that an earlier attempt has written: what may have been applied is looked for first.
func (w *Writer) writeOnce(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (stats Stats, err error) {
	var send []table.Ref
	var places []int
	n := w.extras.Numbers
	for i, r := range rows {
		outcomes[i] = table.Outcome{Fate: table.Again} // until it is known better
		if err != nil {
			continue
		}
		if repeated[i] {
			var found bool
			stats.Searched++
			if found, err = n.find(r, &outcomes[i]); found {
				stats.Found++
			}
			if found || err != nil || outcomes[i].Code != "" || outcomes[i].Message != "" {
				continue
			}
		}
		send, places = append(send, r), append(places, i)
	}
	if err != nil || len(send) == 0 {
		return stats, err
	}
	some := make([]table.Outcome, len(send))
	more, err := w.write(send, make([]bool, len(send)), some)
	stats.add(more)
	for k, i := range places {
		from := outcomes[i].From
		outcomes[i] = some[k]
		outcomes[i].From = from
	}
	return stats, err
}

// find looks for a row that an earlier attempt may have written. Found, its outcome is Written; else the outcome says why it
// cannot be told now, or nothing. An error means that no request will succeed.
func (n *Numbers) find(r table.Ref, o *table.Outcome) (found bool, err error) {
	key, err := plainbuffer.Decode(r.Body())
	if err != nil {
		return false, fmt.Errorf("look for a row of table %s: %w", n.Table, err)
	}
	from := n.from(r.Key())
	mark := string(table.AppendMark(nil, n.Job, r))
	number := int64(0)
	err = n.search(key.Key, from, firstPage, func(m string, k *tablestore.PrimaryKey) (more bool) {
		if m == mark && n.Column < len(k.PrimaryKeys) {
			// Of copies the lowest stays, which is the first that comes.
			number, _ = k.PrimaryKeys[n.Column].Value.(int64)
		}
		return number == 0
	})
	if err != nil {
		return false, n.unknown(err, o)
	}
	o.From = from
	if number == 0 {
		return false, nil
	}
	n.note(r.Key(), number)
	*o = table.Outcome{Fate: table.Written, Number: number, From: from}
	return true, nil
}

// unknown says what to do about a row that could not be looked for. Nothing was sent, so it can be tried again.
func (n *Numbers) unknown(err error, o *table.Outcome) error {
	o.Code, o.Message = errorText(err)
	switch client.Classify(err) {
	case client.Unavailable:
		o.Unavailable = client.NotServing(err)
	case client.Throttled, client.Ambiguous, client.Unrecognized:
	default:
		return fmt.Errorf("look for a row of table %s: %w", n.Table, &client.Error{Cause: err})
	}
	return nil
}

// firstPage is how many rows a search for one row reads first: it is mostly the next one of its ordering key, or none is
// there. Further pages grow.
const firstPage = 8

// search calls each with the mark and the key of every row with a mark that has the key's columns before the number, from
// the number from on, in their order, until it wants no more. It reads limit rows first; 0 is as many as one answer holds.
func (n *Numbers) search(key []plainbuffer.Cell, from int64, limit int32, each func(mark string, key *tablestore.PrimaryKey) (more bool)) error {
	c := &tablestore.RangeRowQueryCriteria{
		TableName: n.Table, StartPrimaryKey: new(tablestore.PrimaryKey), EndPrimaryKey: new(tablestore.PrimaryKey),
		Direction: tablestore.FORWARD, MaxVersion: 1, ColumnsToGet: []string{n.Mark},
	}
	for i, k := range key {
		switch {
		case i < n.Column:
			c.StartPrimaryKey.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
			c.EndPrimaryKey.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
		case i == n.Column && from > 0:
			c.StartPrimaryKey.AddPrimaryKeyColumn(k.Name, from)
			c.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
		default:
			c.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue(k.Name)
			c.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
		}
	}
	for ; ; limit = min(8*limit, maxPage) {
		c.Limit = limit
		page, err := n.page(c)
		if err != nil {
			return err
		}
		for _, r := range page.Rows {
			if mark, ok := n.markOf(r); ok && !each(mark, r.PrimaryKey) {
				return nil
			}
		}
		if page.NextStartPrimaryKey == nil || len(page.NextStartPrimaryKey.PrimaryKeys) == 0 {
			return nil
		}
		c.StartPrimaryKey = page.NextStartPrimaryKey
	}
}

// maxPage is how many rows an answer holds at most.
const maxPage = 5000

// markOf returns a row's mark, and false if it has none of this load's.
func (n *Numbers) markOf(r *tablestore.Row) (string, bool) {
	for _, cell := range r.Columns {
		if mark, ok := cell.Value.(string); ok && cell.ColumnName == n.Mark && cell.Timestamp >= n.Since {
			return mark, true
		}
	}
	return "", false
}

// page makes an error of a panic: the SDK dereferences fields that a broken answer lacks.
func (n *Numbers) page(c *tablestore.RangeRowQueryCriteria) (page *tablestore.GetRangeResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unreadable answer: %v", p)
		}
	}()
	return n.searcher.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: c})
}
