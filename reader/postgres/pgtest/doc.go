// Package pgtest runs a real PostgreSQL for tests: Start makes a server on loopback, in a folder of its own, that ends with the test. Tests that
// take one are skipped unless TSIMPORT_SOURCES is set, as make sources does.
package pgtest
