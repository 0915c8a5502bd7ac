// Package export writes tables to files. To writes rows in key order to a writer, ToFile to a file, reading partitions
// in parallel, in bounded memory. A file appears under its name when complete; an interrupted export continues after
// the last row on disk. ToArchive writes an exact archive, or files for other programs.
package export
