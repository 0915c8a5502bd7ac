package sqldump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// MaxStatement is how many bytes a statement has at most that is not rows.
const MaxStatement = 8 << 20

// Lines reads a dump.
type Lines struct {
	In            *bufio.Reader
	Offset, Count int64 // bytes and lines that were read
}

// NewLines reads a text from its beginning.
func NewLines(r io.Reader) Lines { return Lines{In: bufio.NewReaderSize(r, 256<<10)} }

// Line reads a line that is not of rows, with its end. At the end of the text it may lack that.
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
			return nil, fmt.Errorf("at byte %d: a line of more than %d MiB that is not of rows", x.Offset, MaxStatement>>20)
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}
