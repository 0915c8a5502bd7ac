// Package tablescan reads a table as the source of a load. Divide cuts it into key ranges, each a live, wide source
// whose places are keys. Rows have all versions with timestamps. Reading fails if the table is dropped or replaced.
package tablescan
