// Package table holds the types that every other room uses: Value, Key, Row, Block, Batch, Schema, Location and Reject, and the
// limits of the service. A row never changes once it is made. The package knows nothing of files, goroutines or the network,
// and imports the standard library only. docs/glossary.md defines the words.
package table
