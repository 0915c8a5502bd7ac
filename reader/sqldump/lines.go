package sqldump

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"example.com/tsimport/reader/sqlname"
)

// MaxStatement is the size of the largest statement without rows, in bytes.
const MaxStatement = 8 << 20

// Lines reads a dump line by line.
type Lines struct {
	In            *bufio.Reader
	Offset, Count int64 // number of bytes and lines read so far
}

// Indexing is the state of reading a dump to find its tables.
type Indexing struct {
	Lines
	Dump   Dump
	Text   []byte // text of the current statement so far
	From   int64  // offset of the current statement
	Lexer  Lexer
	Schema string // schema of names that have none; may be ""
	Begun  bool   // whether the comment that begins a dump has been read
	Cut    string // what the end of the text interrupts; "" if nothing
}

func NewIndexing(r io.Reader) Indexing {
	return Indexing{Lines: Lines{In: bufio.NewReaderSize(r, 256<<10)}}
}

// Named returns the full name of a table, or "" if there are no parts.
func (x *Indexing) Named(parts []string) string {
	if x.Schema != "" && len(parts) == 1 {
		parts = []string{x.Schema, parts[0]}
	}
	return sqlname.Join(parts...)
}

// Finish returns the dump. The text must have been read.
func (x *Indexing) Finish() *Dump {
	if x.Cut == "" && len(x.Text) > 0 {
		x.Cut = fmt.Sprintf("the statement at byte %d", x.From)
	}
	switch {
	case x.Cut != "":
		x.Dump.Truncated = fmt.Errorf("the dump ends within %s, at byte %d: it is incomplete", x.Cut, x.Offset)
	case x.Begun:
		x.Dump.Truncated = fmt.Errorf("the dump ends at byte %d without its last line: it is incomplete", x.Offset)
	}
	return &x.Dump
}

// Line reads a line outside of rows, including its line end, which the last line may lack.
func (x *Lines) Line() (line []byte, err error) {
	for {
		part, err := x.In.ReadSlice('\n')
		x.Offset += int64(len(part))
		line = append(line, part...)
		switch {
		case err == nil:
			x.Count++
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= MaxStatement:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("at byte %d: a line without rows is longer than %d MiB", x.Offset, MaxStatement>>20)
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}
