// Package null is a Tablestore that acknowledges every write and stores nothing, to measure the client's cost of a row.
// Start serves; the Server counts the rows that arrive and answers reads with the rows of RowsOf. Every table exists,
// and the operations of loads, exports, comparisons and copies are supported.
package null
