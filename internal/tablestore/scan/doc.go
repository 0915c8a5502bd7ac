// Package scan reads tables over the wire. A table's name comes in; its rows go out in primary-key order, as values or
// formatted as CSV or JSON lines, or the keys at which its partitions begin. It promises every row of the range exactly
// once, over any number of pages and retries, and bounds of partitions that increase, exact where the service names them.
// It knows nothing of loading.
package scan
