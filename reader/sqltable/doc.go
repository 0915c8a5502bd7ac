// Package sqltable reads a table of a live SQL server: ranges of its primary key, in pages, by sessions of one
// snapshot. A Server is what differs between servers: reader/postgres and reader/mysql. The package promises the
// contract of a live source.Source, that all rows are of one snapshot or that Snapshots says which are not, and that no
// reading continues in a table that has changed.
package sqltable
