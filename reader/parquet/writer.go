package parquet

import (
	"bytes"
	"strings"
)

// writer is what a file says of the program that wrote it. Pages hold nothing beyond their values, except what some programs
// are known to leave there.
type writer string

// group is how many values of a packed run belong together: the last of them may be padding, and need not be zeros.
func (w writer) group() uint64 {
	if strings.HasPrefix(string(w), "DuckDB") {
		return 256
	}
	return 8
}

// padding reports whether the writer leaves padding after plain values.
func (w writer) padding(rest []byte) bool {
	return strings.HasPrefix(string(w), "fastparquet") && bytes.Equal(rest, make([]byte, 8))
}
