// Package parquet reads Parquet files. Open takes random access to the bytes and returns a File, which provides splits
// of whole rows and their records, with a typed value for each requested column. A split has exactly the rows that the
// footer states, or reading it fails with an error that names file, row group and column.
//
// # Why the pages are decoded here
//
// The codecs are libraries (klauspost/compress, pierrec/lz4, andybalholm/brotli). Footer, pages, levels and encodings
// are read here, because neither Go library guarantees this. parquet-go 0.32.0 reads wrong values without an error from
// two of the 441 good conformance files (runs of true, some LZ4_RAW pages; see mistaken in the test), fills up a page
// that has fewer values than its header says from a pooled buffer, grows its LZ4 buffer without end on damaged input,
// and refuses valid files for a required but unused field. arrow-go 18.8.0 panics on some damaged files, delivers fewer
// rows than the footer states on others, and has no INT96 outside the range of nanoseconds. Here values are decoded
// from the page's bytes when a row needs them, so a header that promises billions of values costs nothing until they
// are read. The tests use parquet-go as the writer and for comparison.
package parquet
