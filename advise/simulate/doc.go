// Package simulate computes how much of a table's write capacity a sequence of rows can use when the table is cut into
// range partitions: as live traffic, second by second, and as a load in file order with many workers that retry. The
// rows' partition keys come in as numbers that sort as the keys do, shares between 0 and 1 go out. It promises that the
// same keys give the same share, and that one key value is never divided. It does not know columns, files or a clock.
package simulate
