// Package condition reads conditions that the service checks: ParseFilter those of a read, comparisons of a column with a value, and
// ParseWhen those of a write, comparisons of a column of the row that is stored with a value of the row that is written. Both join
// comparisons with and, or, not and parentheses. What a service cannot check is refused by name.
package condition
