package mysqldump

import (
	"bytes"
	"errors"
	"fmt"
)

// Cutter finds the ends of rows in a sequence of INSERT statements.
type Cutter struct {
	Begun bool // whether reading starts between two rows of a statement

	state state
	head  []byte // INSERT INTO … up to the first row
	name  bool   // whether it is inside a quoted name in the head
	list  bool   // whether it is inside the list of columns in the head
	quote byte   // quote of the current text in a row; 0 outside of texts
	skip  bool   // whether the next byte of the text is escaped
	rows  int64  // number of complete rows
}

type state uint8

const (
	between  state = iota // between statements
	inHead                // in the head of a statement
	inRow                 // in the parentheses of a row
	afterRow              // after a row, before a comma or the end of the statement
	nextRow               // after a comma, before the next row
)

// maxHead is the largest size of an INSERT before its first row, in bytes.
const maxHead = 1 << 20

// SyntaxError is a syntax error in the text of rows.
type SyntaxError struct {
	Pos  int // offset in the data passed to Cut
	Want string
	Got  byte
}

func (e *SyntaxError) Error() string {
	text := fmt.Sprintf("want %s, found %q", e.Want, e.Got)
	if e.Got == '"' && e.Want == wantInsert {
		text += "; names in double quotes come from --compatible=ansi: dump again without it"
	}
	if e.Want == wantRow {
		text += "; a row has numbers, texts, bytes and NULL, and no functions"
	}
	return text
}

const wantRow = "'(' of a row"

const wantInsert = "INSERT INTO a table (columns) VALUES and a row"

// Cut processes the next data. It returns the end of the last row that ends there, or -1 if none does.
func (c *Cutter) Cut(data []byte) (end int, err error) {
	end = -1
	for from := 0; from < len(data); {
		n, last, err := c.statement(data[from:])
		if last >= 0 {
			end = from + last
		}
		if err != nil {
			if e := new(SyntaxError); errors.As(err, &e) {
				e.Pos += from
			}
			return end, err
		}
		from += n
	}
	return end, nil
}

// End returns an error if the text so far is incomplete. row is always false, because the text never ends a row.
func (c *Cutter) End() (row bool, err error) {
	if c.state != between && !c.Begun {
		return false, errors.New("the last statement has no end")
	}
	return false, nil
}

// statement processes a statement up to its end. It returns the bytes processed, and the end of the last row or -1.
func (c *Cutter) statement(data []byte) (n, last int, err error) {
	last = -1
	if c.Begun {
		c.Begun, c.state = false, afterRow
	}
	for n < len(data) {
		b := data[n]
		switch c.state {
		case between:
			if !isSpace(b) {
				c.state, c.head, c.name, c.list = inHead, c.head[:0], false, false
				continue
			}
		case inHead:
			if err := c.inHead(b, n); err != nil {
				return n, last, err
			}
		case inRow:
			n += c.inRow(data[n:])
			if c.state == afterRow {
				last = n
			}
			continue
		case afterRow, nextRow:
			switch {
			case isSpace(b):
			case c.state == nextRow && b == '(':
				c.state = inRow
			case c.state == afterRow && b == ',':
				c.state = nextRow
			case c.state == afterRow && b == ';':
				c.state = between
				return n + 1, last, nil
			default:
				return n, last, &SyntaxError{n, map[state]string{afterRow: "',' or ';' after a row", nextRow: wantRow}[c.state], b}
			}
		}
		n++
	}
	return n, last, nil
}

// inHead processes a byte of INSERT INTO NAME (COLUMNS) VALUES (.
func (c *Cutter) inHead(b byte, pos int) error {
	switch {
	case b == '`':
		c.name = !c.name
	case c.name:
	case b == '(' && isValues(c.head):
		c.state = inRow
		return nil
	case b == '(' && !c.list:
		c.list = true
	case b == ')' && c.list:
	case b == '\'' || b == '"' || b == ';' || b == '(' || b == ')' || len(c.head) > maxHead:
		return &SyntaxError{pos, wantInsert, b}
	}
	c.head = append(c.head, b)
	return nil
}

func isValues(head []byte) bool {
	head = bytes.TrimRight(head, " \t\r\n")
	const word = "VALUES"
	n := len(head) - len(word)
	return n > 0 && bytes.EqualFold(head[n:], []byte(word)) && (isSpace(head[n-1]) || head[n-1] == '`' || head[n-1] == ')')
}

// inRow returns the offset of the end of the row, or of the end of data.
func (c *Cutter) inRow(data []byte) int {
	for i := 0; i < len(data); {
		switch {
		case c.skip:
			c.skip = false
			i++
		case c.quote != 0:
			n := textEnd(data[i:], c.quote)
			if n < 0 {
				return len(data)
			}
			if i += n + 1; data[i-1] == '\\' {
				c.skip = true
			} else {
				c.quote = 0 // a doubled quote opens it again
			}
		default:
			b := data[i]
			if i++; b == '\'' || b == '"' {
				c.quote = b
			} else if b == ')' {
				c.state = afterRow
				c.rows++
				return i
			}
		}
	}
	return len(data)
}

// textEnd returns the offset of the next quote or backslash, or -1 if there is neither.
func textEnd(data []byte, quote byte) int {
	end := bytes.IndexByte(data, quote)
	if end < 0 {
		return bytes.IndexByte(data, '\\')
	}
	if escape := bytes.IndexByte(data[:end], '\\'); escape >= 0 {
		return escape
	}
	return end
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }
