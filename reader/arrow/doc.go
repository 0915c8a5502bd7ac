// Package arrow reads the IPC formats of Apache Arrow: files (also called Feather, version 2) and streams. Open takes
// random access and returns a File, which gives splits of whole rows; NewStream reads in order and gives batches. Both
// give records with a typed value for each requested column. A split gives exactly its record batch's rows with their
// values, or an error that names file, record batch and column.
//
// # Why the messages are decoded here
//
// The codecs are libraries (klauspost/compress, pierrec/lz4). Metadata and buffers are read here because the Go library
// cannot keep the promise: FlatBuffers for Go does not check its input, and metadata whose tables are their own
// descendants crash arrow-go 18.8.0 with a stack overflow, which no recover stops. Buffers are decoded when a row asks
// for them; of an uncompressed file only the bytes of the requested rows and columns are read. testdata/make.py writes
// the files of the tests with pyarrow, Polars and DuckDB, and their contents.
package arrow
