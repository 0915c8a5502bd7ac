// Package simulate computes the share of a table's write capacity that a sequence of rows can use if the table is cut
// into range partitions. Cut divides partition keys that are given as sortable numbers. Live computes the share for
// live traffic, second by second, and Load for a load in file order with many workers. A key value is never divided.
package simulate
