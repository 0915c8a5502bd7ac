// Package archive is the format of exact archives of tables: parts of compressed JSON lines, in a folder or an object
// store, with each cell's type, timestamp and version, and a manifest. Exact.Open and Exact.OpenIn begin or resume an
// archive: Writer.Begin makes a part, Part.Commit names it, Writer.Finish writes the manifest last. Read and ReadFrom
// read a manifest; Manifest.Check compares the parts with it. New makes frozen sources of the parts. A part is complete
// or absent, and so is an archive. Lake.Open and Lake.OpenIn do the same for files of one schema: Writer.Put,
// Writer.Rewrite, Writer.FinishLake.
package archive
