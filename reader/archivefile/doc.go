// Package archive is the format of exact archives of tables: parts of compressed JSON lines, in a folder or an object
// store, that keep each cell's type, timestamp and version, and a manifest that describes them. Exact.Open and
// Exact.OpenIn begin or resume an archive: Writer.Begin makes a part, Part.Commit names it, Writer.Finish writes the
// manifest last. Read and ReadFrom read a manifest; Manifest.Check compares the parts with it. New makes frozen sources
// of the parts, which are compared before the first row. A part is complete or absent, and so is an archive. Lake.Open
// and Lake.OpenIn do the same for files of one schema that other programs read: Writer.Put, Writer.Rewrite,
// Writer.FinishLake. The package does not know the service.
package archive
