// Package null is a Tablestore that acknowledges every write and stores nothing, to measure the client's cost per row.
// Its Server counts the rows written, and answers reads with rows made by RowsOf.
package null
