// Package sourcetest tests the contract of source.Source with Check, and has Rows and Wide as sources for other tests.
package sourcetest
