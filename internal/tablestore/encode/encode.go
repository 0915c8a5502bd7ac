package encode

import (
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Body is the form of a row's content after its ordering key. The checks are the same for all forms.
type Body uint8

const (
	WholeBody  Body = iota // the row's PlainBuffer bytes
	HashedBody             // an eight-byte hash of the cells, valid within this process
	NoBody
	SummedBody // the sum of the cells, for puts without timestamps and Cells; otherwise PlainBuffer bytes
	KeptBody   // like SummedBody, but the cells follow a sum in a compact form for Unkept
)

// SumBytes is the size of a sum in bytes. The PlainBuffer of a row is longer.
const SumBytes = 8

// Encoder makes the rows of one schema in one mode. It is not safe for concurrent use.
type Encoder struct {
	mode       table.Mode
	changes    bool // each row has its own mode
	deleteNull bool
	keys       []plainbuffer.Name
	keyNames   []string
	numbered   int // index of the key column with a placeholder; 0 if there is none
	attributes []plainbuffer.Name
	columns    []table.Column
	// Reserve and ReserveCells are the bytes and cells that sending may add. StampBytes is the size of a timestamp.
	Reserve      int
	ReserveCells int
	StampBytes   int
	// Body is the form of the rows' content.
	Body    Body
	hasher  *plainbuffer.Hasher // hasher for a SummedBody
	reduced []uint64            // hashes of the attributes' names
	sum     uint64              // sum of the row's cells so far
	// Table is the table of the next row in a load into several tables. The row's ordering key begins with it.
	Table string
	// Cells holds the next row's cells outside the schema's columns, from a self-describing record.
	Cells []Cell
	row   uint64 // number of rows with Cells so far
	// packed holds names of cells for AppendPacked.
	packed packedNames
	// Window, if set, returns the range of timestamps that the table accepts, in milliseconds; to is exclusive.
	Window   func() (from, to int64)
	asked    bool // Window has been called for this row
	from, to int64
}

// New makes an encoder. With deleteNull, an update deletes null columns; otherwise it does not change them.
func New(s *table.Schema, mode table.Mode, deleteNull bool) *Encoder {
	e := &Encoder{mode: mode, changes: mode == table.Changes, deleteNull: deleteNull && mode == table.Update,
		columns: s.Attributes(), numbered: s.Numbered}
	for _, k := range s.Key {
		e.keys = append(e.keys, plainbuffer.NewName(k.Name))
		e.keyNames = append(e.keyNames, k.Name)
	}
	for _, c := range e.columns {
		e.attributes = append(e.attributes, plainbuffer.NewName(c.Name))
	}
	return e
}

// As sets the mode of the following rows to Put, Update or Delete, in table.Changes. An update deletes null columns.
func (e *Encoder) As(m table.Mode) { e.mode, e.deleteNull = m, m == table.Update }

// Sums makes the encoder append rows as SummedBody or KeptBody, with the hasher's sums of their cells.
func (e *Encoder) Sums(h *plainbuffer.Hasher, as Body) {
	e.Body, e.hasher = as, h
	for i := range e.columns {
		e.reduced = append(e.reduced, h.Column(e.columns[i].Name))
	}
}

// Append appends a row to the block. If the service would refuse the row, it returns the reason and leaves the block
// unchanged. values holds the key columns first; the type Null means no value. Unless the row is a deletion, it also
// gets Cells.
//
// stamps holds the timestamps of values in milliseconds; a negative one, or nil stamps, means the server's time. record
// is the original record, which is kept with the row; it is nil for formats that are not text.
func (e *Encoder) Append(b *table.Block, values []table.Value, stamps []int64, m table.Span,
	record []byte) *table.Reason {
	start := len(b.Data)
	e.asked = false
	if e.Table != "" {
		b.Data = table.AppendTable(b.Data, e.Table)
	}
	size, why := e.key(b, values)
	if why != nil {
		b.Data = b.Data[:start]
		return why
	}
	body := len(b.Data)
	if e.Body == HashedBody || e.Body == NoBody || e.Body >= SummedBody && e.mode == table.Put && stamps == nil &&
		e.Cells == nil {
		if size, why = e.brief(b, values, stamps, size); why != nil {
			b.Data = b.Data[:start]
			return why
		}
		b.Append(start, body, size, m, record)
		return nil
	}
	var r plainbuffer.Row
	r.Begin(b.Data)
	for i := range e.keys {
		if i == e.numbered && i > 0 {
			r.KeyAutoIncrement(&e.keys[i])
			continue
		}
		r.Key(&e.keys[i], values[i])
	}
	if e.mode == table.Delete {
		b.Data = r.EndDelete()
	} else {
		if stamps != nil {
			stamps = stamps[len(e.keys):]
		}
		size, why = e.cells(&r, values[len(e.keys):], stamps, size)
		b.Data = r.End()
		if why != nil {
			b.Data = b.Data[:start]
			return why
		}
	}
	b.Append(start, body, size, m, record)
	if e.changes {
		b.Rows[len(b.Rows)-1].SetMode(e.mode)
	}
	return nil
}

// key checks the key columns, appends the ordering key and returns the accounted size of the primary key.
func (e *Encoder) key(b *table.Block, values []table.Value) (size int, why *table.Reason) {
	for i := range e.keys {
		v := values[i]
		if i == e.numbered && i > 0 {
			size += e.keys[i].Len() + table.Value{Type: table.Integer}.Size()
			continue
		}
		if v.Type == table.Null {
			return 0, &table.Reason{Column: e.keyNames[i], Code: table.CodeNullKey, Message: "a primary-key column has no value"}
		}
		if len(v.Bytes) > table.MaxKeyBytes {
			return 0, &table.Reason{Column: e.keyNames[i], Code: table.CodeKeyTooLong, Value: table.Show(v.Bytes),
				Message: fmt.Sprintf("the key value has %d bytes, the limit is %d", len(v.Bytes), table.MaxKeyBytes)}
		}
		if e.numbered == 0 || i < e.numbered {
			b.Data = table.AppendKey(b.Data, v)
		}
		size += e.keys[i].Len() + v.Size()
	}
	return size, nil
}

// cells encodes the attribute cells, or only checks them if r is nil. It returns size, the key's size, plus theirs.
func (e *Encoder) cells(r *plainbuffer.Row, values []table.Value, stamps []int64, size int) (_ int, why *table.Reason) {
	count := 0
	for i := range values {
		v := &values[i]
		switch {
		case v.Type != table.Null && e.mode == table.Increment:
			if r != nil {
				r.Increment(&e.attributes[i], v.Int)
			}
			size += e.attributes[i].Len() + v.Size()
			count++
		case v.Type != table.Null:
			if len(v.Bytes) > table.MaxValueBytes {
				return 0, tooLong(v, e.columns[i].Name)
			}
			size += e.attributes[i].Len() + v.Size()
			count++
			stamped := stamps != nil && stamps[i] >= 0
			if stamped {
				if why := e.checkStamp(stamps[i], e.columns[i].Name); why != nil {
					return 0, why
				}
				size += 8
			} else {
				size += e.StampBytes
			}
			switch {
			case r == nil:
				if e.Body >= SummedBody {
					e.sum += e.hasher.Cell(e.reduced[i], v)
				}
			case size > table.MaxRowBytes: // only count, because the row will be refused
			case stamped:
				r.CellAt(&e.attributes[i], *v, stamps[i])
			default:
				r.Cell(&e.attributes[i], *v)
			}
		case e.deleteNull && !v.Absent:
			if r != nil {
				r.DeleteColumn(&e.attributes[i])
			}
			size += e.attributes[i].Len()
			count++
		}
	}
	if e.Cells != nil {
		more, added, why := e.own(r, size, count)
		if why != nil {
			return 0, why
		}
		size, count = size+more, count+added
	}
	if limit := table.MaxColumns - e.ReserveCells; count > limit {
		return 0, &table.Reason{Code: table.CodeTooManyColumns,
			Message: fmt.Sprintf("the row has %d attribute columns, the limit is %d", count, limit)}
	}
	if count == 0 && (e.mode == table.Update || e.mode == table.Increment) {
		return 0, &table.Reason{Code: table.CodeNoCells, Message: "an update without a value changes nothing"}
	}
	if size += e.Reserve; size > table.MaxRowBytes {
		return 0, &table.Reason{Code: table.CodeRowTooLarge,
			Message: fmt.Sprintf("the row has %d bytes, the limit is %d", size, table.MaxRowBytes)}
	}
	return size, nil
}

func tooLong(v *table.Value, column string) *table.Reason {
	return &table.Reason{Column: column, Code: table.CodeValueTooLong, Value: table.Show(v.Bytes),
		Message: fmt.Sprintf("the value has %d bytes, the limit is %d", len(v.Bytes), table.MaxValueBytes)}
}

// checkStamp refuses a timestamp that is too far from the current time for the table or out of the service's range.
func (e *Encoder) checkStamp(ms int64, column string) *table.Reason {
	if ms >= table.MaxTimestamp {
		return &table.Reason{Column: column, Code: table.CodeRange,
			Message: fmt.Sprintf("the timestamp %d is not a time in milliseconds", ms)}
	}
	if e.Window == nil {
		return nil
	}
	if !e.asked { // only once per row, because Window reads the clock
		e.from, e.to = e.Window()
		e.asked = true
	}
	if ms/1000 < e.from/1000 || ms/1000 >= e.to/1000 {
		return &table.Reason{Column: column, Code: table.CodeRange,
			Message: fmt.Sprintf("the timestamp %d is beyond the table's maximum deviation or time to live", ms)}
	}
	return nil
}
