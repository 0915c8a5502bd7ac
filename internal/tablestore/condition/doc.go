// Package condition parses conditions that the service checks: ParseFilter those of reads, which compare columns with
// values, ParseWhen those of writes, which compare stored with new columns. Comparisons are joined with and, or, not.
package condition
