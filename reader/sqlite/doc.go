// Package sqlite reads a table of a SQLite file as reader/sqltable reads those of servers: ranges of its primary key or
// its rowid, by read-only sessions that share one moment of the file, while others may write to it. Each value has its
// type in the file, not its column's declared type.
package sqlite
