// Package verify compares a table with its inputs, and checks before a load whether inputs can be loaded. Run takes the
// request of a load and a connection to its table, and returns how many rows are equal, missing, different and surplus,
// with examples. Check returns how many records a load would reject and which keys collide. Each record and each row of
// the table is counted exactly once, rows are made as a load makes them, the table is read in ranges and never row by
// row, and nothing is written except temporary files. The package knows nothing of flags or how rows were written.
package verify
