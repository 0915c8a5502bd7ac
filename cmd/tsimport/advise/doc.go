// Package advise reads files or a table once and rates each column as a partition key. Run takes the inputs, and the
// partitions and traffic of the planned table, and returns a Report: statistics, the usable share of the table's
// capacity, a verdict with its reason and a fix, and a design as a command. Equal inputs give equal reports.
package advise
