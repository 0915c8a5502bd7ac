// Package plainbuffer encodes rows in PlainBuffer, Tablestore's row format. Names and typed values come in, the bytes
// of one row (header, cells, both checksums) are appended to the caller's buffer. It promises the same bytes as the
// official SDK, in one pass and without allocating; it checks no limits. It knows nothing of requests or of tables.
package plainbuffer
