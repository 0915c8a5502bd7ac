// Package tablescan reads a table as the source of a load. Divide cuts it into ranges of keys, each a live, wide source
// whose places are keys. Rows have all versions with timestamps. If the table is dropped or replaced, reading fails.
package tablescan
