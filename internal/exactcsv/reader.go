package exactcsv

import (
	"encoding/csv"
	"io"
)

// NewReader returns a csv.Reader of r. As usual, a quote inside an unquoted field is an error.
func NewReader(r io.Reader) *csv.Reader { return csv.NewReader(&doubling{from: r}) }

// doubling doubles a carriage return before a line feed inside quotes, because csv.Reader drops one of them.
type doubling struct {
	from    io.Reader
	text    []byte // text that has been read but not passed on
	room    [4 << 10]byte
	inside  bool // the reader is inside quotes
	pending bool // a carriage return inside quotes was passed on
	err     error
}

func (d *doubling) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(d.text) == 0 {
			if n > 0 || d.err != nil {
				break
			}
			var got int
			got, d.err = d.from.Read(d.room[:])
			d.text = d.room[:got]
			continue
		}
		b := d.text[0]
		if d.pending && b == '\n' {
			d.pending = false
			p[n] = '\r'
			n++
			continue
		}
		if b == '"' {
			d.inside = !d.inside
		}
		d.pending = d.inside && b == '\r'
		p[n] = b
		n++
		d.text = d.text[1:]
	}
	if n == 0 && len(p) > 0 {
		return 0, d.err
	}
	return n, nil
}
