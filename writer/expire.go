package writer

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Expiry selects which cells of a refused row to drop so that the others are written. Cells expire while rows wait.
type Expiry struct {
	Reach time.Duration    // cells older than this are left out
	Live  time.Duration    // a row expires when all of its cells are older than this; 0 means no limit
	Now   func() time.Time // the latest time that the service's clock can show
}

// minTimestamp precedes the limit in the service's refusal of a timestamp. This limit may be newer than a computed one.
const minTimestamp = "MinTimestamp:"

// before returns the time in milliseconds before which a refused row's cells are dropped.
func (x *Expiry) before(message string) int64 {
	oldest := x.Now().Add(-x.Reach).UnixMilli()
	if _, after, ok := strings.Cut(message, minTimestamp); ok {
		digits, _, _ := strings.Cut(after, ".")
		if ms, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return max(oldest, ms)
		}
	}
	return oldest
}

// withoutExpired sends refused rows again without their expired cells. The put of a whole row that has expired becomes
// a delete or, under a condition or with an auto-increment key, is not sent.
func (w *Writer) withoutExpired(stats *Stats, rows []table.Ref, repeated []bool, outcomes []table.Outcome) error {
	x := w.options.Expiry
	if x == nil {
		return nil
	}
	var again, gone remade
	for i, r := range rows {
		o := &outcomes[i]
		if o.Fate != table.Refused || o.Unmet || client.ClassifyCode(o.Code, o.Message) != client.Content {
			continue
		}
		oldest := x.before(o.Message)
		since, body, err := plainbuffer.AppendSince(nil, r.Body(), oldest)
		if err != nil || since.Dropped == 0 || w.options.When != nil && w.lacks(body) {
			continue
		}
		nothing := since.Left == 0 && x.Live > 0 && since.Newest < oldest+(x.Reach-x.Live).Milliseconds()
		switch {
		case since.Left == 0 && w.mode == table.Update, nothing &&
			(w.existence != table.Ignore || w.options.AutoIncrement != nil):
			*o = table.Outcome{Fate: table.Written, Expired: since.Dropped} // nothing is left to write
		case nothing:
			gone.add(i, r, plainbuffer.AppendDelete(nil, body), since.Dropped)
		default:
			again.add(i, r, body, since.Dropped)
		}
	}
	err := again.write(w, w.mode, stats, repeated, outcomes)
	return errors.Join(err, gone.write(w, table.Delete, stats, repeated, outcomes))
}

// remade holds rows of a request without their expired cells.
type remade struct {
	rows            []table.Ref
	places, expired []int // places in the request; number of expired cells
}

func (m *remade) add(place int, r table.Ref, body []byte, expired int) {
	b := &table.Block{Split: r.Block.Split}
	b.AppendMade(r.Key(), body, r.Row().Size(), table.Span{Record: uint32(r.Row().Number())})
	m.rows, m.places, m.expired = append(m.rows, table.Ref{Block: b}), append(m.places, place), append(m.expired, expired)
}

// write writes the rows and sets their outcomes in those of the request.
func (m *remade) write(w *Writer, mode table.Mode, stats *Stats, repeated []bool, outcomes []table.Outcome) error {
	if len(m.rows) == 0 {
		return nil
	}
	before, ends := make([]bool, len(m.rows)), make([]table.Outcome, len(m.rows))
	for n, i := range m.places {
		before[n], ends[n].Stamp = repeated[i], outcomes[i].Stamp
	}
	defer func(was table.Mode) { w.mode = was }(w.mode)
	w.mode = mode
	more, err := w.write(m.rows, before, ends, false)
	stats.add(more)
	for n, i := range m.places {
		outcomes[i] = ends[n]
		outcomes[i].Expired += m.expired[n]
	}
	return err
}

// lacks reports whether a row lacks a value for its condition.
func (w *Writer) lacks(body []byte) bool {
	row, err := plainbuffer.Decode(body)
	return slices.ContainsFunc(w.options.When.New(),
		func(name string) bool { return err != nil || newValue(row, name).Type == table.Null })
}
