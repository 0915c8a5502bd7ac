// Package mysql reads a table of a live MySQL or MariaDB for reader/sqltable, by go-sql-driver/mysql: an Address is its Server. It promises
// that sessions read one snapshot, that texts of values are exact, and that no password is in an error or in what is shown of an address.
package mysql
