// Package condition reads conditions that the service checks: ParseFilter those of a read, which compare a column with
// a value, and ParseWhen those of a write, which compare a stored row's column with a new row's value. Both join
// comparisons with and, or, not and parentheses. Conditions that a service cannot check are refused by name.
package condition
