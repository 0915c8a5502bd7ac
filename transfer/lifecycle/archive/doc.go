// Package archive keeps whole tables as archives. Folder.Export writes the rows of a table in key order to an archive of its own (package
// reader/archivefile), with a manifest of what is known of it next to it; Folder.Verify reads the archive back and compares it with a second
// reading of the table. A verified export is never overwritten or moved, and an interrupted one is made again. The package
// knows nothing of ages, of the service, or of what happens to the table.
//
// This package carries no compatibility promise: only the module's root package does.
package archive
