// Package table holds the types that every other room uses: Value, Key, Row, Block, Batch, Schema, Location and Reject,
// and the limits of the service. A row never changes once it is made. The package does not know files, goroutines or
// the network, and imports only the standard library. docs/glossary.md defines the words.
package table
