// Package tablescan reads a table as the source of a load. Divide cuts it into key ranges, each a live, wide source
// with keys as places. Rows have timestamps and, unless Config limits them, all versions. Reading fails if the table is
// dropped or replaced.
package tablescan
