// Package baseline loads a CSV file as a hand-written program with the official SDK would. Load has three ways: Sequential,
// WithWorkers and Timeline. Each writes the rows with BatchWriteRow and returns how many were written. They do no more than
// such a program does, but they do it well: full batches, the SDK's own retries, every answer checked. The package shares
// nothing with tsimport's own way to load.
package baseline
