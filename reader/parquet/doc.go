// Package parquet reads Parquet files. Open needs random access and returns a File, which has splits of whole rows.
// Records have a typed value for each requested column. A split delivers exactly the number of rows that the footer
// states, or fails with an error that names the file, row group and column.
//
// # Why the pages are decoded here
//
// The codecs are libraries (klauspost/compress, pierrec/lz4, andybalholm/brotli). Footer, pages, levels and encodings
// are read here, because neither Go library guarantees this. parquet-go 0.32.0 reads wrong values without an error from
// two of the 441 valid conformance files (runs of true, some LZ4_RAW pages; see mistaken in the test), completes pages
// that have fewer values than their headers say from a pooled buffer, grows its LZ4 buffer endlessly on damaged input,
// and refuses valid files because of a required but unused field. arrow-go 18.8.0 panics on some damaged files,
// delivers fewer rows than the footer states on others, and cannot read INT96 outside the range of nanoseconds. Here,
// values are decoded from a page's bytes when a row needs them, so that billions of claimed values cost nothing until
// they are read. The tests write files with parquet-go and compare with it.
package parquet
