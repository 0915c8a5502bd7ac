// Package null is a Tablestore that acknowledges every write and stores nothing, to measure the client's cost of a row.
// The Server counts rows and answers reads with the rows of RowsOf, for loads, exports, comparisons and copies.
package null
