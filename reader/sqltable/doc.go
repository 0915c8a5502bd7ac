// Package sqltable reads a table of a live SQL server: ranges of its primary key, in pages, by sessions of one
// snapshot. A Server (reader/postgres, reader/mysql) is what differs. All rows are of one snapshot, or Snapshots says
// which are not, and no reading continues in a table that has changed.
package sqltable
