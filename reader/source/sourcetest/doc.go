// Package sourcetest is the contract of source.Source as a test, Check, which every source runs, and Rows, a source for tests of
// what stands above the seam.
package sourcetest
