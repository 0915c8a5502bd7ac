// Package sourcetest tests the contract of source.Source. Check is the suite that every source runs; Rows and Wide are sources
// for tests of the rooms above the seam.
//
// This package carries no compatibility promise: only the module's root package does.
package sourcetest
