// Package export writes tables to files. A table and the way its rows are to be written come in; text in key order goes
// out. It promises that partitions are read in parallel and their rows come out in key order with bounded memory, that
// a file appears under its name only when it is whole, and that an export to a file that was interrupted continues after
// the last row that is safely on disk. It knows nothing of flags and of what is done with the text.
package export
