// Package archive stores whole tables in a folder or an object store. Place.Export makes an exact archive, with package
// transfer/export, and a manifest. Place.Verify reads the archive back and compares it with the table. Another process
// never overwrites a complete archive; it continues an interrupted one.
package archive
