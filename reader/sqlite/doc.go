// Package sqlite reads an SQLite table for reader/sqltable: as key ranges, in read-only sessions that see the same
// state of the file while others write. A value has its own type, not its column's.
package sqlite
