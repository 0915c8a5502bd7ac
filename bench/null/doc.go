// Package null is a Tablestore that acknowledges every write and stores nothing, to measure the client's cost of a row.
// The Server counts rows written and answers reads with the rows of RowsOf.
package null
