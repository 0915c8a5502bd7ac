// Package advise reads input files once and rates each column as a partition key. Run takes the files and the planned
// table's size and traffic, and returns a Report: statistics of each column's values, the share of the table's capacity
// it could use, a verdict with its reason and a fix, and a complete design as a load command. Memory is bounded. The
// same input gives the same report. The package knows nothing of tables, services or the terminal.
package advise
