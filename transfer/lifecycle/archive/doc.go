// Package archive stores whole tables in a folder or an object store. Place.Export makes an exact archive with
// transfer/export and a manifest; Place.Verify reads it back and compares it with the table. A complete archive is
// never overwritten by another process; an interrupted one is continued.
package archive
