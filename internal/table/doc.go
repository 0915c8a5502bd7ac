// Package table holds the types that all other packages use: Value, Row, Block, Batch, Schema, Location and Reject, and
// the limits of the service. The content of a row never changes. The package uses no files, goroutines or network, and
// imports only the standard library. docs/glossary.md defines the terms.
package table
