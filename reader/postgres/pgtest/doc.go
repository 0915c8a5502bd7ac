// Package pgtest runs a real PostgreSQL server on the loopback interface for tests, if TSIMPORT_SOURCES is set.
package pgtest
