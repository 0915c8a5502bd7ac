// Package verify compares a table with its inputs, and checks before a load whether inputs can be loaded. The request of a
// load comes in, and a connection to its table; how many rows are equal, missing, different and surplus goes out, with
// examples, or how many records would be rejected and whose keys collide. It promises that every record and every row of
// the table is counted exactly once, that rows are made as a load makes them, that the table is read in ranges and never
// row by row, and that it writes nothing but temporary files of its own. It knows nothing of flags and of how rows got
// where they are.
package verify
