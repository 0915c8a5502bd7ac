// Package checkpoint records which records of a load are final. From the records read, waiting or unanswered it writes
// a small crash-safe file that later tells whether a record is final. The file's counters are exactly those of the
// final records; its size does not grow with the rows. It knows no requests, lanes or inputs.
package checkpoint
