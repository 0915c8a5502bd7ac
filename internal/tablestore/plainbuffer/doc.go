// Package plainbuffer encodes rows in PlainBuffer, Tablestore's row format. In one pass and without allocating, it
// appends the bytes of a row (header, cells, checksums) to the caller's buffer. The official SDK produces the same
// bytes. The package checks no limits and knows nothing of requests and tables.
package plainbuffer
