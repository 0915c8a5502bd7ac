// Package table holds the nouns every other room speaks in: Value, Key, Row, Block, Batch, Schema, limits, Origin
// and Reject. Values come in from a reader, rows packed into blocks go out to the shuffle and the writer. It promises
// that a row, once made, never changes, and that the limits here are the service's own. It knows nothing of files,
// of goroutines or of the network, and imports the standard library only.
//
// # Glossary
//
// One noun, one meaning, in code, flags, logs and documents:
//
//   - source: an input file or stream. split: a part of a source that can be parsed alone.
//   - record: what the reader delivers; row: a record that became a primary key and its PlainBuffer bytes.
//   - partition: the server's key range. lane: our queue for one partition.
//   - ordering key: what must not overtake itself: the primary key, or its columns before the one that the service numbers.
//   - number: the value of an auto-increment key column, made by the service. mark: what a row whose number is the
//     service's to make is recognised by.
//   - final: a row is final once it is written and acknowledged, rejected, or superseded.
//   - unfinished: read, but not final when the run stopped.
package table
