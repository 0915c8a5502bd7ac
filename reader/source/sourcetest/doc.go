// Package sourcetest tests the contract of source.Source with Check. Rows, Wide and Keyed are sources for other tests.
package sourcetest
