// Package scan reads tables over the wire. Table reads the rows of a table in primary-key order, as values or formatted
// as CSV or JSON lines; Get reads single rows; Partitions finds the keys at which partitions begin. Each row of a range
// comes exactly once, over any number of pages and retries. Partition bounds increase, and are exact if the service
// names them. The package does not know loads.
package scan
