// Package mysqltest runs a real MariaDB on loopback for tests, which are skipped unless TSIMPORT_SOURCES is set.
package mysqltest
