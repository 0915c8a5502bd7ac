// Package sqlite reads a table of a SQLite file as reader/sqltable reads those of servers: ranges of its primary key or its rowid, by sessions
// that are opened read-only and share one moment of the file, while others may write to it. Each value comes with the type that it has in
// the file, not that which its column declares.
package sqlite
