// Package arrow reads the IPC formats of Apache Arrow: files (also called Feather, version 2) and streams. Open takes
// random access and returns a File, which provides splits of whole rows. NewStream reads in order and returns batches.
// Both deliver records with a typed value for each requested column. A split has exactly the rows and values of its
// record batch, or reading it fails with an error that names file, record batch and column.
//
// # Why the messages are decoded here
//
// The codecs are libraries (klauspost/compress, pierrec/lz4). Metadata and buffers are read here because the Go library
// cannot guarantee this: FlatBuffers for Go does not check its input, and metadata tables that contain themselves crash
// arrow-go 18.8.0 with a stack overflow, which recover cannot catch. Buffers are decoded when a row needs them; of an
// uncompressed file, only the bytes of the requested rows and columns are read. testdata/make.py writes the tests'
// files and their contents with pyarrow, Polars and DuckDB.
package arrow
