// Package sqltable reads a table of a live SQL server: ranges of its primary key, page by page, by sessions that share
// one snapshot. A Server (reader/postgres, reader/mysql) implements what differs. All rows are from one snapshot, or
// Snapshots says which are not, and no reading continues in a table that has changed.
package sqltable
