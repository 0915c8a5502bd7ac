// Package copytable contains the specifics of a load whose source is a table. New makes a source that refuses, before
// it is divided, data that the target would not store exactly; Define gives a new table the source's options; Distinct
// checks that two tables differ. The load itself is a regular one.
package copytable
