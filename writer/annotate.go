package writer

import (
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Options are what some loads need beside plain writing. The workers of a load share them; a nil one is not needed.
type Options struct {
	AutoIncrement *AutoIncrement  // the service numbers the rows: puts of rows with a placeholder in their key
	Stamps        *Stamps         // cells without a timestamp get the one that the row's outcome names before it is sent: updates
	Increments    *Increments     // rows are marked and written under a condition: increments
	When          *condition.When // each row is written only if the stored one passes
	Unchanged     bool            // or is as the row says in table.UnchangedColumn
	Size          *Size           // learns how large requests may be
	Expiry        *Expiry         // cells that have grown too old are left out, and the rest of their row is written
	Brief         bool            // where every row was written, Stats say so and no outcome does
}

// With gives the writer its options.
func (w *Writer) With(x Options) *Writer {
	w.options = x
	return w
}

// annotated is the rows of a request as they are sent, where that is not as they were encoded.
type annotated struct {
	data     []byte
	ends     []int   // of each row in data
	asks     []byte  // that follows each row
	stamps   []int64 // of each row, where cells get one
	conds    []byte
	condEnds []int // of each row in conds, where they have any
	mark     []byte
	bare     []byte // a row without what it says of the stored one
}

// annotate makes the bytes of the rows that are sent next.
func (w *Writer) annotate(rows []table.Ref, outcomes []table.Outcome) (err error) {
	d := &w.sent
	d.data, d.ends, d.stamps = d.data[:0], d.ends[:0], d.stamps[:0]
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

// annotateIncrements gives the rows of increments their marks and conditions.
func (w *Writer) annotateIncrements(c *Increments, rows []table.Ref) (err error) {
	d := &w.sent
	d.conds, d.condEnds = d.conds[:0], d.condEnds[:0]
	for _, r := range rows {
		at := position(r)
		d.mark = c.appendMark(d.mark[:0], r, at)
		d.conds = c.appendCondition(d.conds, at)
		d.condEnds = append(d.condEnds, len(d.conds))
		if d.data, err = plainbuffer.AppendWithCell(d.data, r.Body(), &c.column, table.Value{Type: table.String, Bytes: d.mark}); err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		d.ends = append(d.ends, len(d.data))
	}
	return nil
}

// asksKey asks for the key of a row, as the service has made it.
var asksKey = []byte{tagReturn, 2, tagReturnType, returnKey}

// body returns the bytes of the i-th row of the request as they are sent.
func (d *annotated) body(i int, r table.Ref) []byte {
	if len(d.ends) == 0 {
		return r.Body()
	}
	return part(d.data, d.ends, i)
}

// condition is that of the i-th row, nil where it is its existence alone.
func (d *annotated) condition(i int) []byte {
	if len(d.condEnds) == 0 {
		return nil
	}
	return part(d.conds, d.condEnds, i)
}

// part is the i-th part of what ends there.
func part(all []byte, ends []int, i int) []byte {
	if i == 0 {
		return all[:ends[0]]
	}
	return all[ends[i-1]:ends[i]]
}

// size is the length of body.
func (d *annotated) size(i int, r table.Ref) int {
	if len(d.ends) == 0 {
		return r.Row().Bytes()
	}
	return len(part(d.data, d.ends, i))
}

// completed adds to the outcome of the i-th row that was sent what the options make of it; the answer is nil if the request
// failed as a whole.
func (w *Writer) completed(a *answered, i int, row table.Ref, o *table.Outcome) {
	if s := w.options.Stamps; s != nil {
		o.Stamp = w.sent.stamps[i]
		o.Stale = o.Fate == table.Refused && client.ClassifyCode(o.Code, o.Message) == client.Content && s.AtFault(o.Stamp)
	}
	if n := w.options.AutoIncrement; n != nil && o.Fate == table.Written && a != nil {
		o.Number = n.returned(row, a.row)
		if o.Number == 0 && n.Mark != "" {
			*o = table.Outcome{Fate: table.Unknown, Message: "unreadable answer: a row was written, but its key is missing"}
		}
	}
}
