// Package export writes tables to files. To writes the rows of a table in key order to a writer, ToFile to a file.
// Partitions are read in parallel, in bounded memory. A file appears under its name only when it is complete, and an
// interrupted export to a file continues after the last row safely on disk. ToArchive writes an exact archive, or files
// for other programs. The package knows nothing of flags.
package export
