// Command tsbench measures tsimport for those who maintain it: what a row costs the client, and how evenly loads use the partitions of a
// table. `tsbench tsimport …` is tsimport as this tree has it, which is what it starts and measures.
package main
