// Package archive is the format of exact archives of tables: parts of compressed JSON lines, in a folder or an object
// store, with the type, timestamp and version of each cell, and a manifest. Exact.Open and Exact.OpenIn begin or resume
// an archive: Writer.Begin, Writer.NewPart and PartWriter.Commit add parts, and Writer.Finish writes the manifest last.
// Read and ReadFrom read a manifest; Manifest.Check compares the parts with it. New makes frozen sources of the parts.
// A part is complete or absent, and so is an archive. Lake.Open and Lake.OpenIn do the same for files of one schema,
// with Writer.Put, Writer.Rewrite and Writer.FinishLake.
package archive
