package writer

import (
	"fmt"

	"tsimport/client"
	"tsimport/plainbuffer"
	"tsimport/table"
)

// Extras are what some loads need beside plain writing. The workers of a load share them; a nil one is not needed.
type Extras struct {
	Numbers *Numbers // the service numbers the rows: puts of rows with a placeholder in their key
	Stamp   *Stamp   // cells without a timestamp get one: updates
	Size    *Size    // learns how large requests may be
}

// With gives the writer its extras.
func (w *Writer) With(x Extras) *Writer {
	w.extras = x
	return w
}

// dressed is the rows of a request as they are sent, where that is not as they were encoded.
type dressed struct {
	data  []byte
	ends  []int  // of each row in data
	asks  []byte // that travels behind each row
	stamp int64
	mark  []byte
}

// dress makes the bytes of the rows that are sent next.
func (w *Writer) dress(rows []table.Ref) (err error) {
	d := &w.sent
	d.data, d.ends, d.stamp = d.data[:0], d.ends[:0], 0
	if w.extras.Numbers != nil {
		d.asks = asksKey
	}
	switch {
	case w.extras.Stamp != nil:
		d.stamp = w.extras.Stamp.Now()
	case w.extras.Numbers == nil || w.extras.Numbers.Mark == "":
		return nil
	}
	for _, r := range rows {
		if w.extras.Stamp != nil {
			d.data, err = plainbuffer.AppendStamped(d.data, r.Body(), d.stamp)
		} else {
			n := w.extras.Numbers
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

// asksKey asks for the key of a row, as the service has made it.
var asksKey = []byte{tagReturn, 2, tagReturnType, returnKey}

// body returns the bytes of the i-th row of the request as they are sent.
func (d *dressed) body(i int, r table.Ref) []byte {
	if len(d.ends) == 0 {
		return r.Body()
	}
	start := 0
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.data[start:d.ends[i]]
}

// size is the length of body.
func (d *dressed) size(i int, r table.Ref) int {
	switch {
	case len(d.ends) == 0:
		return r.Row().Bytes()
	case i == 0:
		return d.ends[0]
	}
	return d.ends[i] - d.ends[i-1]
}

// completed adds to a row's outcome what the extras make of it; the answer is nil if the request failed as a whole.
func (w *Writer) completed(a *answered, row table.Ref, o *table.Outcome) {
	if s := w.extras.Stamp; s != nil {
		o.Stamp = w.sent.stamp
		if o.Fate == table.Refused && client.ClassifyCode(o.Code, o.Message) == client.Content && s.leave(o.Stamp) {
			o.Fate = table.Again
		}
	}
	if n := w.extras.Numbers; n != nil && o.Fate == table.Written && a != nil {
		o.Number = n.returned(row, a.row)
		if o.Number == 0 && n.Mark != "" {
			*o = table.Outcome{Fate: table.Unknown, Message: "unreadable answer: a row was taken, but not what key it has"}
		}
	}
}
