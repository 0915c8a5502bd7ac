// Package scan reads tables over the wire. Table reads rows in primary-key order, as values or formatted as CSV or JSON
// lines; Get reads single rows; Partitions finds where partitions begin. Each row of a range comes exactly once, over
// any number of pages and retries. Bounds increase, and are exact if the service names them.
package scan
