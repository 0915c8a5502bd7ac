// Package condition reads conditions that the service checks: ParseFilter those of a read, on a column and a value,
// ParseWhen those of a write, on a stored and a new column. Comparisons are joined with and, or, not and parentheses.
package condition
