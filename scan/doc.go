// Package scan reads tables over the wire. A table's name comes in, its rows go out in primary-key order, as values or
// formatted as CSV or JSON lines. It promises every row of the range exactly once, over any number of pages and retries.
// It knows nothing of loading.
package scan
