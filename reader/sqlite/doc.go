// Package sqlite reads a SQLite table as reader/sqltable reads those of servers: key ranges in read-only sessions that
// share one moment of the file, while others write. Each value has its own type, not its column's.
package sqlite
