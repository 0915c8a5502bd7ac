// Package filter evaluates the filters of reads and the column conditions of writes.
//
// In come the bytes of a Filter message, and then rows as their key and their cells by name, newest first; out go
// verdicts, and the columns of the page that was asked for.
// Promised: a filter that is decoded never fails, blocks or changes, several goroutines may use it, and no input,
// however hostile, nests deeper or compiles to more than the limits below allow.
// It does not know tables, requests, which cells a read selects, or what follows from a verdict.
package filter
