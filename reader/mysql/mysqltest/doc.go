// Package mysqltest runs a real MariaDB for tests: Start makes a server on loopback, in a folder of its own, that ends with the test. Tests that
// take one are skipped unless TSIMPORT_SOURCES is set, as make sources does.
//
// This package carries no compatibility promise: only the module's root package does.
package mysqltest
