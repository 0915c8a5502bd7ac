// Package mysqltest runs a real MariaDB for tests on loopback; they are skipped unless TSIMPORT_SOURCES is set.
package mysqltest
