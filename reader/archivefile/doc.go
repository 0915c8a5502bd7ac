// Package archive implements exact archives of tables: compressed JSON lines, with the type, timestamp and version of
// each cell, and a manifest, in a folder or an object store. Exact.Open and Exact.OpenIn begin or resume an archive:
// Writer.Begin, Writer.NewPart and PartWriter.Commit add parts, and Writer.Finish writes the manifest last. Read and
// ReadFrom read a manifest; Manifest.Check compares the parts with it. New makes frozen sources of the parts. A part is
// complete or absent, and so is an archive. For lakes, files with a common schema, Lake.Open and Lake.OpenIn are used
// with Writer.Put, Writer.Rewrite and Writer.FinishLake.
package archive
