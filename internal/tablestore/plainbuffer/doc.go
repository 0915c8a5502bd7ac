// Package plainbuffer encodes and decodes rows in PlainBuffer, Tablestore's row format. A Row appends the same bytes as
// the official SDK to a buffer; a RowReader checks and reads the rows of responses; a Hasher hashes cells. The package
// checks no limits and knows nothing of requests and tables.
package plainbuffer
