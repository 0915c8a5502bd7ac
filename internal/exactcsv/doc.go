// Package exactcsv reads CSV with encoding/csv, but keeps a carriage return before a line feed inside quotes, as a
// csv.Writer wrote it. It is for small files and files that commands wrote; reader/csv reads the inputs of a load.
package exactcsv
