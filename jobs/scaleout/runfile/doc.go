// Package runfile keeps rows on their way from the process that has read them to the one that writes them: frames of rows, compressed
// and with a checksum, grouped by shard in objects of a job directory. A Writer makes objects of rows in any order of shards; Read gives the
// rows of an extent, in the order in which they were added. What is damaged is refused, never skipped.
package runfile
