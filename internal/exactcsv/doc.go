// Package exactcsv reads CSV by encoding/csv, and keeps the carriage returns that it drops: those before a line feed inside quotes.
// Its fields are exactly those that a csv.Writer was given. Line ends outside quotes may be LF or CR LF. It reads small files and those
// that commands have written themselves; inputs of a load are read by reader/csv.
package exactcsv
