// Package sqltest has checks that the tests of all database readers share, and runs database servers for them.
package sqltest
