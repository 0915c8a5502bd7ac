// Package scan reads tables over the wire. Table reads rows in primary-key order, a Formatter writes them as CSV or
// JSON lines, Get reads single rows, and Partitions finds the bounds of partitions. Each row of a range is delivered
// exactly once, despite pages and retries. Bounds are in increasing order, and exact if the service reports them.
package scan
