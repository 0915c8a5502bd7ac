// Package mysqltest runs a real MariaDB for tests: Start makes a server on loopback, in its own folder, that ends with
// the test. Tests with a server are skipped unless TSIMPORT_SOURCES is set, as in make sources.
package mysqltest
