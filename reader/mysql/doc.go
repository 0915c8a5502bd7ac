// Package mysql reads a table of a live MySQL or MariaDB server for reader/sqltable, with go-sql-driver. Address is the
// sqltable.Server. Sessions read one snapshot, values have exact texts, and no error or shown address has a password.
package mysql
