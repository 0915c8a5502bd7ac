// Package tablescan reads a table as the source of a load. New makes a source.Origin of it: Divide cuts the table into ranges of keys,
// and each is a live, wide source whose places are keys. A row comes with all of its versions and their timestamps, as it is when its page
// is read. A table that is dropped, or dropped and made again, fails the reading in place of its end.
package tablescan
