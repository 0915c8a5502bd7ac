// Command tsbench measures tsimport for its maintainers: the client's cost of a row, and how evenly loads use the
// partitions of a table. It runs `tsbench tsimport …`, which is tsimport built from this source tree.
package main
