// Package checkpoint keeps track of the final records of a load. Records that were read, that wait, or that were sent
// without an answer come in. A small file goes out, written so that a crash at any moment leaves a whole one; it later
// answers whether a record is final. The package promises that the counters in the file are exactly those of the final
// records, and that its size does not grow with the number of rows. It knows nothing of requests, lanes and inputs.
package checkpoint
