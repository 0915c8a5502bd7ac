// Package archive keeps whole tables as files. The rows of a table in key order come in, twice; a file of JSON lines goes
// out, and beside it a manifest with the count of its rows and its checksum. It promises that an export that is called
// verified was read back from the file and compared with a second reading of the table, that no such export is ever
// written over or moved, and that one that was cut short is made again. It knows nothing of ages, of
// the service, and of what happens to the table.
package archive
