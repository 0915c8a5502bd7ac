// Package copytable has what is special in a load from a table. New makes a source that refuses data that the target
// would not store exactly; Define gives a new table the source's options; Distinct checks that two tables differ.
package copytable
