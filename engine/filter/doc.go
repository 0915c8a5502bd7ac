// Package filter evaluates the filters of reads and the column conditions of writes. Decode and DecodeCondition take
// the bytes of a Filter message. The Filter judges rows, given as their key and their cells by name, newest first, and
// selects the requested page of columns. A decoded filter never fails, blocks or changes, and is safe for concurrent
// use. No input, however hostile, nests deeper or compiles to more than the limits below.
package filter
