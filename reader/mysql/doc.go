// Package mysql reads a table of a live MySQL or MariaDB for reader/sqltable, with go-sql-driver: Address is its
// Server. Sessions read one snapshot, values have exact texts, and no error or shown address contains a password.
package mysql
