// Package filter evaluates the filters of reads and the column conditions of writes. Decode and DecodeCondition take a
// Filter message. The Filter judges rows and selects the requested page of columns. It never fails, blocks or changes,
// and is safe for concurrent use. No input nests deeper or compiles to more than the limits below.
package filter
