package writer

import (
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/client"
	"tsimport/plainbuffer"
	"tsimport/table"
)

// Extras are what some loads need beside plain writing. The workers of a load share them; a nil one is not needed.
type Extras struct {
	Numbers *Numbers // the service numbers the rows: puts of rows with a placeholder in their key
	Stamp   *Stamp   // cells without a timestamp get one: updates
}

// With gives the writer its extras.
func (w *Writer) With(x Extras) *Writer {
	w.extras = x
	return w
}

// dressed is the rows of a request as they are sent, where that is not as they were encoded.
type dressed struct {
	data  []byte
	ends  []int // of each row in data
	stamp int64
	mark  []byte
}

// dress makes the bytes of the rows that are sent next.
func (w *Writer) dress(rows []table.Ref) (err error) {
	d := &w.sent
	d.data, d.ends, d.stamp = d.data[:0], d.ends[:0], 0
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
			d.mark = table.AppendMark(d.mark[:0], n.Job, r)
			d.data, err = plainbuffer.AppendWithCell(d.data, r.Body(), &n.column, table.Value{Type: table.String, Bytes: d.mark})
		}
		if err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		d.ends = append(d.ends, len(d.data))
	}
	return nil
}

// bodyOf returns the bytes of the i-th row of the request as they are sent.
func (w *Writer) bodyOf(i int, r table.Ref) []byte {
	d := &w.sent
	if len(d.ends) == 0 {
		return r.Body()
	}
	start := 0
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.data[start:d.ends[i]]
}

// numberedPut makes the SDK's own kind of change of a row with a placeholder: it asks for no key where another kind stands
// in for it.
func (w *Writer) numberedPut(row table.Ref, i int) (*tablestore.PutRowChange, error) {
	decoded, err := plainbuffer.Decode(w.bodyOf(i, row))
	if err != nil {
		return nil, err
	}
	p := &tablestore.PutRowChange{TableName: w.table, Condition: w.put.Condition, PrimaryKey: new(tablestore.PrimaryKey)}
	for k, c := range decoded.Key {
		if k == w.extras.Numbers.Column {
			p.PrimaryKey.AddPrimaryKeyColumnWithAutoIncrement(c.Name)
			continue
		}
		p.PrimaryKey.AddPrimaryKeyColumn(c.Name, client.SDKValue(c.Value))
	}
	for _, c := range decoded.Cells {
		if c.Stamped {
			p.AddColumnWithTimestamp(c.Name, client.SDKValue(c.Value), c.Stamp)
			continue
		}
		p.AddColumn(c.Name, client.SDKValue(c.Value))
	}
	p.SetReturnPk()
	return p, nil
}

// completed adds to a row's outcome what the extras make of it; the result is nil if the request failed as a whole.
func (w *Writer) completed(result *tablestore.RowResult, row table.Ref, o *table.Outcome) {
	if s := w.extras.Stamp; s != nil {
		o.Stamp = w.sent.stamp
		if o.Fate == table.Refused && client.ClassifyCode(o.Code, o.Message) == client.Content && s.leave(o.Stamp) {
			o.Fate = table.Again
		}
	}
	if n := w.extras.Numbers; n != nil && o.Fate == table.Written && result != nil {
		o.Number = n.returned(row, result)
		if o.Number == 0 && n.Mark != "" {
			*o = table.Outcome{Fate: table.Unknown, Message: "unreadable answer: a row was taken, but not what key it has"}
		}
	}
}
