// Package plainbuffer encodes rows in PlainBuffer, Tablestore's row format. It takes names and typed values and appends
// the bytes of one row (header, cells, both checksums) to the caller's buffer. The bytes equal those of the official
// SDK, in one pass and without allocating. It checks no limits and does not know requests or tables.
package plainbuffer
