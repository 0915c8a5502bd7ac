// Package advise reads input files once and rates each column as a partition key. Run takes the files and the planned
// table's size and traffic, and returns a Report: statistics, the usable share of the table's capacity, a verdict with
// its reason and a fix, and a complete design as a load command. Equal inputs give equal reports.
package advise
