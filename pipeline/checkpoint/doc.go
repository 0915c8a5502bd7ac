// Package checkpoint records which records of a load are final. Given the records that were read, wait or are
// unanswered, it writes a small crash-safe file that later tells whether a record is final. The file's counters count
// exactly the final records. Its size does not grow with the rows.
package checkpoint
