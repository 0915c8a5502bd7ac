// Package exactcsv reads CSV with encoding/csv, but keeps carriage returns before a line feed inside quotes, as given
// to a csv.Writer. It is for small files and those written by commands; reader/csv reads the inputs of a load.
package exactcsv
