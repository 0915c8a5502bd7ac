// Package export writes tables to files. To writes rows in key order to a writer, and ToFile writes them to a file.
// They read partitions in parallel, in bounded memory. A file gets its name when it is complete; an interrupted export
// continues after the last row on disk. ToArchive writes an exact archive or files for other programs.
package export
