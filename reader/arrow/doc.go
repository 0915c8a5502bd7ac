// Package arrow reads the IPC formats of Apache Arrow: files (also called Feather, version 2) and streams. Open needs
// random access and returns a File, which has splits of whole rows. NewStream reads in order and returns batches.
// Records have a typed value for each requested column. A split delivers exactly the rows and values of its record
// batch, or fails with an error that names the file, record batch and column.
//
// # Why the messages are decoded here
//
// The codecs are libraries (klauspost/compress, pierrec/lz4). Metadata and buffers are decoded here because the Go
// library cannot guarantee this: FlatBuffers for Go does not check its input, and metadata tables that contain
// themselves crash arrow-go 18.8.0 with a stack overflow, from which recover does not help. Buffers are decoded when a
// row needs them. In an uncompressed file, only the bytes of the requested rows and columns are read. testdata/make.py
// generates the test files and their expected contents with pyarrow, Polars and DuckDB.
package arrow
