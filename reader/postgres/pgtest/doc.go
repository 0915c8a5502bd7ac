// Package pgtest runs a real PostgreSQL for tests on loopback; they are skipped unless TSIMPORT_SOURCES is set.
package pgtest
