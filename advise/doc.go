// Package advise reads input files once and finds the columns that make good partition keys. Records come in
// through the reader, a Report goes out: for every column what its values are like, how much of a table's capacity it
// could use, a verdict with its reason and a fix, and a whole design as a load command. It promises bounded memory, the
// same report for the same input, and to say where it looked at a part only. It does not know a table, a service or the
// terminal.
package advise
