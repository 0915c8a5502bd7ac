// Package tablescan reads a table as the source of a load. New makes a source.Origin of it: Divide cuts the table into
// ranges of keys, each a live, wide source whose places are keys. A row has all of its versions with timestamps, as of
// the reading of its page. If the table is dropped, or dropped and created again, the reading fails instead of ending.
package tablescan
