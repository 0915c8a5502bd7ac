// Package mysqltest runs a real MariaDB server on the loopback interface for tests, if TSIMPORT_SOURCES is set.
package mysqltest
