// Package copytable has the parts of a load that only a load from a table needs. New makes a source that refuses data
// that the target would not store exactly. Define gives a new table the source's options. Distinct refuses to copy a
// table to itself.
package copytable
