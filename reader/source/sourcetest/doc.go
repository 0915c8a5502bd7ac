// Package sourcetest tests the contract of source.Source with Check; Rows and Wide are sources for other tests.
package sourcetest
