// Package baseline loads a CSV file as a hand-written program with the official SDK would. A target, a file and its
// columns come in, rows go out with BatchWriteRow, and the number of those written comes back. It promises to do no more
// than such a program does, and not to do it carelessly: whole batches, the SDK's own retries, every answer looked at. It
// knows nothing of tsimport's own way to load.
package baseline
