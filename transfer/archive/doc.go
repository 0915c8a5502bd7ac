// Package archive is the format of exact archives of tables: a folder of parts, compressed lines of JSON that keep each cell with its
// type, timestamp and version, and a manifest that says what they are. Open begins or resumes writing one: Writer.Begin makes a part,
// Part.Commit gives it its name, Writer.Finish writes the manifest last. Read reads a manifest and Manifest.Check compares the parts with
// it. A part is complete or absent, and so is an archive. The package knows nothing of the service.
//
// This package carries no compatibility promise: only the module's root package does.
package archive
