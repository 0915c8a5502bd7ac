// Package archive writes and reads exact archives of tables: compressed JSON lines, with type, timestamp and version of
// each cell, and a manifest, in a folder or an object store. A Writer writes parts, and the manifest last; after an
// interruption, another Writer continues. A part is complete or absent, and so is an archive. New makes frozen sources
// of the parts. A Writer of the kind Lake writes files with a common schema, for other programs.
package archive
