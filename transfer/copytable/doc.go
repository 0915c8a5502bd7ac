// Package copytable decides what is particular to a load whose source is a table: New makes a source of it that refuses, before it is
// divided, what would not be a copy, Define gives a new table the source's options, and Distinct distinguishes two tables. The load itself is
// one like any other.
package copytable
