// Package null is a Tablestore that answers success and keeps nothing, to measure what a row costs a client. Start serves; the Server counts
// the rows that arrive and answers reads with the rows of RowsOf. It has every table, and knows the operations that loads, exports,
// comparisons and copies need.
package null
