// Package sqltable reads a table of a live SQL server as ranges of its primary key, page by page, in sessions that
// share one snapshot. Servers implement the differences: see reader/postgres, reader/mysql and reader/sqlite. All rows
// are from one snapshot, or Snapshots says which rows are not. A reading does not continue in a table that has changed.
package sqltable
