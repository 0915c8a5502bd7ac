// Package runfile stores rows on their way from a reading to a writing process: frames of rows, compressed and with
// checksums, grouped by shard in objects of a job directory. A Writer takes rows in any order of shards. Read returns
// the frames of an extent, with its rows in the order in which they were added. Damaged data is refused, never skipped.
package runfile
