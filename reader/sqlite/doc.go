// Package sqlite reads a SQLite table as reader/sqltable reads a server's: key ranges in read-only sessions that share
// one moment of the file while others write. Each value keeps its own type rather than its column's.
package sqlite
