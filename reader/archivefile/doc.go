// Package archive is the format of exact archives of tables: parts in a folder or in a store of objects, compressed lines of JSON that keep each cell with its
// type, timestamp and version, and a manifest that says what they are. Exact.Open and Exact.OpenIn begin or resume writing one: Writer.Begin makes a part,
// Part.Commit gives it its name, Writer.Finish writes the manifest last. Read and ReadFrom read a manifest, and Manifest.Check compares the parts with
// it. New makes frozen sources of the parts, which are compared before the first row. A part is complete or absent, and so is an archive.
// Lake.Open and Lake.OpenIn do the same for files of one schema that other programs read: Writer.Put, Writer.Rewrite, Writer.FinishLake.
// The package knows nothing of the service.
package archive
