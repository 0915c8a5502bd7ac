// Package archive stores whole tables as archives, in a folder or an object store. Place.Export makes an exact archive
// of a table with transfer/export, and a manifest beside it; Place.Verify reads the archive back and compares it with a
// second reading of the table. A complete archive is never overwritten by another process, and an interrupted one is
// continued. The package knows nothing of ages, nor of what happens to the table.
package archive
