package encode

import (
	"bytes"
	"math"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// packedName is a column name as it begins packed cells: its length, then its bytes.
type packedName struct {
	opens string
	size  int         // length of the name
	next  *packedName // the name after it in the last row that had both
	row   uint64      // packedNames.rows of the last row with such a cell
}

type packedNames struct {
	known map[string]*packedName // names by opens
	first *packedName            // first of the previous row
	rows  uint64
}

// maxPackedNames limits the number of names remembered between rows.
const maxPackedNames = 4096

// AppendPacked is like Append for a put of row, a checked row of a response without its header. values is the row's
// key; may reports whether cells with a name are written unchanged. The result is false if Append might make other
// bytes: versions of a column must be together, newest first, and each cell must have a timestamp and a valid value.
func (e *Encoder) AppendPacked(b *table.Block, values []table.Value, m table.Span, row, record []byte,
	may func(name []byte) bool) bool {
	if e.Body != WholeBody || e.mode != table.Put || len(values) != len(e.keys) || e.numbered > 0 || e.Table != "" {
		return false
	}
	start := len(b.Data)
	if e.packed.rows%askRows == 0 {
		e.asked = false
	}
	size, why := e.key(b, values)
	if why != nil {
		b.Data = b.Data[:start]
		return false
	}
	body := len(b.Data)
	var r plainbuffer.Row
	r.Begin(b.Data)
	for i := range e.keys {
		r.Key(&e.keys[i], values[i])
	}
	b.Data = r.Unfinished()
	key := plainbuffer.WithoutHeader(b.Data[body:])
	cells, ok := 0, bytes.HasPrefix(row, key)
	if ok {
		cells, ok = e.packedSize(plainbuffer.AttributesOf(row[len(key):]), may)
	}
	if size += cells + e.Reserve; !ok || size > table.MaxRowBytes {
		b.Data = b.Data[:start]
		return false
	}
	b.Data = append(b.Data, row[len(key):]...)
	b.Append(start, body, size, m, record)
	return true
}

// askRows is the number of packed rows per call of Window. Rows refused for an outdated window are checked by Append.
const askRows = 16

// packedSize returns the accounted size of a row's cells, or false if they must not be appended unchanged.
func (e *Encoder) packedSize(c plainbuffer.Cells, may func([]byte) bool) (size int, ok bool) {
	if len(e.packed.known) > maxPackedNames {
		e.packed = packedNames{rows: e.packed.rows}
	}
	e.packed.rows++
	count, newest := 0, int64(-1) // latest timestamp checked
	var last *packedName
	expected := &e.packed.first
	for ; c.Next(); count++ {
		of := *expected
		switch {
		case of != nil && opens(c.Content, of):
			expected = &of.next
		case last != nil && opens(c.Content, last):
			of = last
		default:
			if of = e.packedName(c.Content[:4+len(c.Name())], may); of == nil {
				return 0, false
			}
			*expected = of
			expected = &of.next
		}
		if of.row == e.packed.rows && (of != last || c.Timestamp >= newest) {
			return 0, false // perhaps a version occurs twice
		}
		of.row = e.packed.rows
		if last = of; c.Timestamp < 0 || c.Op != plainbuffer.Set {
			return 0, false
		}
		if c.Timestamp != newest {
			if e.checkStamp(c.Timestamp, "") != nil {
				return 0, false
			}
			newest = c.Timestamp
		}
		size += of.size + 8
		switch v := c.Encoded(); v.Type() {
		case table.Integer:
			size += 8
		case table.Double:
			if d := math.Float64frombits(v.Word()); math.IsNaN(d) || math.IsInf(d, 0) {
				return 0, false
			}
			size += 8
		case table.Boolean:
			size++
		case table.String, table.Binary:
			text := v.Bytes()
			if len(text) > table.MaxValueBytes || v.Type() == table.String && !utf8.Valid(text) {
				return 0, false
			}
			size += len(text)
		default:
			return 0, false
		}
	}
	return size, count > 0 && count <= table.MaxColumns-e.ReserveCells
}

func opens(content []byte, n *packedName) bool {
	return len(content) > len(n.opens) && string(content[:len(n.opens)]) == n.opens
}

// packedName finds a name by the beginning of its cells. It returns nil if may refuses such cells.
func (e *Encoder) packedName(opens []byte, may func([]byte) bool) *packedName {
	p := &e.packed
	if n := p.known[string(opens)]; n != nil {
		return n
	}
	if !may(opens[4:]) {
		return nil
	}
	n := &packedName{opens: string(opens), size: len(opens) - 4}
	if p.known == nil {
		p.known = map[string]*packedName{}
	}
	p.known[n.opens] = n
	return n
}
