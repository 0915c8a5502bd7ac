// Package write measures how fast a table takes rows. The shape of rows, how many at a time or how many a second, and an
// instance come in; a table is made, written to with the writer that a load has, and dropped again; a result goes out. It
// promises that at a fixed rate a latency counts from when its batch was due, so that a stall hides nothing, that the rows
// are the same for the same seed, and that it drops only the table that it has made. It does not know who looks at
// the result.
package write
