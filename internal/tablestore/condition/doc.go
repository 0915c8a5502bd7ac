// Package condition parses conditions that the service checks. ParseFilter parses conditions of reads, which compare
// columns with values; ParseWhen parses conditions of writes, which compare columns of the stored row with columns of
// the new row. Comparisons can be joined with and, or and not.
package condition
