// Package mysql reads a table of a live MySQL or MariaDB for reader/sqltable, by go-sql-driver/mysql: an Address is its
// Server. Sessions read one snapshot, texts of values are exact, and no password is in an error or in a shown address.
package mysql
