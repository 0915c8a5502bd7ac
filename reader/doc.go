// Package reader turns bytes into records of typed values. Files and streams come in; splits go out, each of which
// can be parsed alone, and from a split its records in order, converted to the types of the table's columns. It
// promises that the records of a source do not depend on where it was cut, that every record is delivered or named
// in a reason, and that a value is never changed to make it fit. It knows nothing of rows, tables or the network.
package reader
