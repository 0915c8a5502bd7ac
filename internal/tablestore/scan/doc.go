// Package scan reads tables over the wire. Table reads rows in primary-key order, and a Formatter writes them as CSV or
// JSON lines. Get reads single rows. Partitions finds the bounds of partitions; they are in increasing order, and exact
// if the service reports them. Each row of a range is delivered exactly once, despite pages and retries.
package scan
