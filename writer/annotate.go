package writer

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Options holds what some loads need besides plain writes. Zero fields are unused. The workers of a load share it.
type Options struct {
	AutoIncrement *AutoIncrement  // for puts of rows with a placeholder in their key, which the service numbers
	Stamps        *Stamps         // for updates: cells without a timestamp get that of the row's outcome
	Increments    *Increments     // for increments: rows are marked, and written under a condition
	When          *condition.When // each row is written only if the stored one meets it
	Unchanged     bool            // each row is written only if the stored one equals the value of table.UnchangedColumn
	Size          *Size           // learns how large requests may be
	Expiry        *Expiry         // cells that have become too old are left out, and the rest of their row is written
	Brief         bool            // if every row was written, Stats says so and no outcomes are set
}

func (w *Writer) With(x Options) *Writer {
	w.options = x
	return w
}

// annotated holds the bytes of a request's rows, if they are not sent as encoded.
type annotated struct {
	data     []byte
	ends     []int   // end of each row in data
	asks     []byte  // sent after each row: the request for its key, or nothing
	stamps   []int64 // timestamp of each row, if its cells get one
	conds    []byte
	condEnds []int // of each row in conds, if rows have conditions
	mark     []byte
	bare     []byte // buffer for a row without its conditions on the stored row
}

// annotate sets w.sent to the bytes of the rows to send next.
func (w *Writer) annotate(rows []table.Ref, outcomes []table.Outcome) (err error) {
	d := &w.sent
	d.data, d.ends, d.stamps = d.data[:0], d.ends[:0], d.stamps[:0]
	d.conds, d.condEnds = d.conds[:0], d.condEnds[:0]
	if w.options.When != nil {
		if err := w.annotateWhen(rows); err != nil {
			return err
		}
	}
	if w.options.Unchanged {
		return w.annotateUnchanged(rows, outcomes)
	}
	if c := w.options.Increments; c != nil {
		return w.annotateIncrements(c, rows)
	}
	if w.options.AutoIncrement != nil {
		d.asks = asksKey
	}
	switch {
	case w.options.Stamps != nil:
		for i := range outcomes {
			d.stamps = append(d.stamps, outcomes[i].Stamp)
		}
	case w.options.AutoIncrement == nil || w.options.AutoIncrement.Mark == "":
		return nil
	}
	for i, r := range rows {
		if w.options.Stamps != nil {
			d.data, err = plainbuffer.AppendStamped(d.data, r.Body(), d.stamps[i])
		} else {
			n := w.options.AutoIncrement
			d.mark = n.Marker.Append(d.mark[:0], r)
			d.data, err = plainbuffer.AppendWithCell(d.data, r.Body(), &n.column, table.Value{Type: table.String, Bytes: d.mark})
		}
		if err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		d.ends = append(d.ends, len(d.data))
	}
	return nil
}

func (w *Writer) annotateIncrements(c *Increments, rows []table.Ref) (err error) {
	d := &w.sent
	for _, r := range rows {
		at := position(r)
		d.mark = c.appendMark(d.mark[:0], r, at)
		d.conds = c.appendCondition(d.conds, at)
		d.condEnds = append(d.condEnds, len(d.conds))
		if d.data, err = plainbuffer.AppendWithCell(d.data, r.Body(), &c.column,
			table.Value{Type: table.String, Bytes: d.mark}); err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		d.ends = append(d.ends, len(d.data))
	}
	return nil
}

// asksKey requests a row's key, which the service has completed.
var asksKey = []byte{tagReturn, 2, tagReturnType, returnKey}

// body returns the bytes of the request's i-th row as sent.
func (d *annotated) body(i int, r table.Ref) []byte {
	if len(d.ends) == 0 {
		return r.Body()
	}
	return part(d.data, d.ends, i)
}

// condition returns the i-th row's condition; nil means only the existence condition.
func (d *annotated) condition(i int) []byte {
	if len(d.condEnds) == 0 {
		return nil
	}
	return part(d.conds, d.condEnds, i)
}

func part(all []byte, ends []int, i int) []byte {
	if i == 0 {
		return all[:ends[0]]
	}
	return all[ends[i-1]:ends[i]]
}

func (d *annotated) size(i int, r table.Ref) int {
	if len(d.ends) == 0 {
		return r.Row().Bytes()
	}
	return len(part(d.data, d.ends, i))
}

// completed adds to the outcome of the i-th row sent what the options require; a is nil if the whole request failed.
func (w *Writer) completed(a *answered, i int, row table.Ref, o *table.Outcome) {
	if s := w.options.Stamps; s != nil {
		o.Stamp = w.sent.stamps[i]
		o.Stale = o.Fate == table.Refused && client.ClassifyCode(o.Code, o.Message) == client.Content && s.AtFault(o.Stamp)
	}
	if n := w.options.AutoIncrement; n != nil && o.Fate == table.Written && a != nil {
		o.Number = n.returned(row, a.row)
		if o.Number == 0 && n.Mark != "" {
			*o = table.Outcome{Fate: table.Unknown, Message: "malformed response: a row was written, but its key is missing"}
		}
	}
}

// Stamps makes timestamps for cells without one, in a table that keeps several versions. With the service's time, an
// update sent twice would leave two versions. So each row gets a timestamp when it is first sent, and keeps it.
//
// A timestamp is the latest time that the service's clock can show. So it is not below the timestamp of any cell that
// the service stamped or deleted before the row was sent, which could otherwise hide the new cell.
//
// Only AtFault and Last are safe for concurrent use.
type Stamps struct {
	service   func() (earliest, latest time.Time)
	deviation int64 // ms
	last      atomic.Int64
}

// NewStamps returns Stamps within deviation of the service's time. service returns the range in which that time is now.
func NewStamps(service func() (earliest, latest time.Time), deviation time.Duration) *Stamps {
	return &Stamps{service: service, deviation: deviation.Milliseconds()}
}

// stepBack is how many ms the clock may fall below the last timestamp while rows wait; if lower, it was set back.
const stepBack = 50

// Next returns a timestamp above after. It is not below any earlier timestamp, unless the table would refuse that.
func (s *Stamps) Next(after int64) int64 {
	earliest, latest := s.service()
	ms := max(latest.UnixMilli(), s.last.Load(), after+1)
	// The service compares whole seconds, and its clock may be the slowest in the range.
	ms = min(ms, earliest.Unix()*1000+s.deviation-1)
	ms = max(ms, after+1)
	s.last.Store(ms)
	return ms
}

// Wait returns how long to wait for a timestamp above after, so that a key's timestamps rise no faster than time.
func (s *Stamps) Wait(after int64) time.Duration {
	_, latest := s.service()
	if now := latest.UnixMilli(); now > after || now < after-stepBack {
		return 0
	}
	return time.Millisecond
}

// Takes reports whether the table accepts an earlier timestamp if it is sent now.
func (s *Stamps) Takes(ms int64) bool {
	earliest, latest := s.service()
	margin := s.deviation / 20 // allows for the time in transit
	return ms >= latest.UnixMilli()-s.deviation+margin && ms < earliest.Unix()*1000+s.deviation
}

// Last returns the newest timestamp, or 0 if there is none.
func (s *Stamps) Last() int64 { return s.last.Load() }

// AtFault reports whether a row may have been refused for its timestamp rather than its content.
func (s *Stamps) AtFault(ms int64) bool {
	earliest, latest := s.service()
	from, to := earliest.UnixMilli()-s.deviation/2, latest.UnixMilli()+s.deviation/2
	return ms < from || ms >= to
}

// annotateUnchanged turns each row's cell table.UnchangedColumn into a condition on the stored row. Without such a
// cell, no row may be stored.
func (w *Writer) annotateUnchanged(rows []table.Ref, outcomes []table.Outcome) error {
	d := &w.sent
	for i, r := range rows {
		var filter []byte
		was := false
		_, err := plainbuffer.Walk(r.Body(), nil, func(v plainbuffer.View) {
			if string(v.Name) == table.UnchangedColumn {
				was, filter = true, v.Value.Bytes
			}
		})
		row := r.Body()
		if err == nil && was {
			d.bare, err = plainbuffer.AppendWithout(d.bare[:0], row, table.UnchangedColumn)
			row = d.bare
		}
		switch {
		case err != nil:
		case w.options.Stamps != nil:
			d.stamps = append(d.stamps, outcomes[i].Stamp)
			d.data, err = plainbuffer.AppendStamped(d.data, row, outcomes[i].Stamp)
		default:
			d.data = append(d.data, row...)
		}
		if err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		d.ends = append(d.ends, len(d.data))
		existence := table.ExpectNotExist
		if was {
			existence = table.ExpectExist
		}
		d.conds = append(d.conds, tagRowExistence, expectations[existence])
		if len(filter) > 0 {
			d.conds = binary.AppendUvarint(append(d.conds, tagColumnCondition), uint64(len(filter)))
			d.conds = append(d.conds, filter...)
		}
		d.condEnds = append(d.condEnds, len(d.conds))
	}
	return nil
}
