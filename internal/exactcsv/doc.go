// Package exactcsv reads CSV with encoding/csv, but keeps the carriage returns that it drops: those before a line feed
// inside quotes. Its fields are exactly those given to a csv.Writer. Line ends outside quotes may be LF or CR LF. It is
// for small files and those written by commands; reader/csv reads the inputs of a load.
package exactcsv
