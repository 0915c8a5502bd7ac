// Package arrow reads the IPC formats of Apache Arrow: files (also called Feather, version 2) and streams. Open takes random access to the
// bytes of either and returns a File, which gives splits of whole rows; NewStream reads either in order and gives batches of rows. From
// both come records with a typed value for each requested column. For any bytes, a split gives exactly the rows that its record batch
// states with the values that it holds, or an error that names file, record batch and column. The package knows nothing of tables or
// conversions.
//
// # Why the messages are decoded here
//
// The codecs are libraries (klauspost/compress, pierrec/lz4). Metadata and buffers are read here, because the Go library cannot keep the
// promise: FlatBuffers for Go does not check what it reads, and metadata whose tables are their own descendants take arrow-go 18.8.0 down
// with an overflow of the stack, which no recover stops. What is decoded here is decoded when a row asks for it, and of a file that is not
// compressed only the bytes of the rows and columns that were asked for are read. testdata/make.py writes the files of the tests with pyarrow,
// Polars and DuckDB, and what they say that these hold.
package arrow
