// Package checkpoint keeps what is final of a load. What was read, what of it waits and what has been sent without an
// answer come in; a small file goes out, written so that a crash at any moment leaves a whole one, and comes back as an
// answer to the question whether a record is final. It promises that the counters beside it are exactly those of the final
// records, and that its size does not grow with the number of rows. It knows nothing of requests, lanes and inputs.
package checkpoint
