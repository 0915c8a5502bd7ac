// Command tsbench measures tsimport for its maintainers: the client's cost of a row, and how evenly loads use the
// partitions of a table. It starts and measures `tsbench tsimport …`, the tsimport of this tree.
package main
