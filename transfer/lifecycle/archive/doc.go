// Package archive keeps whole tables as archives, in a folder or in a store of objects. Place.Export makes an exact archive of a table with
// transfer/export, and notes beside it what is known of it; Place.Verify reads the archive back and compares it with a second reading of the
// table. An archive that is whole is never overwritten by another process, and an interrupted one is continued. The package knows nothing of
// ages, nor of what happens to the table.
package archive
