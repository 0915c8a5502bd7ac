// Package simulate computes what share of a table's write capacity a sequence of rows can use when the table is cut
// into range partitions. Cut divides partition keys, given as numbers that sort like the keys, into partitions. Live
// computes the share for live traffic, second by second; Load computes it for a load in file order with many workers
// that retry. The same keys give the same shares, and a key value is never divided. It knows no columns and files.
package simulate
