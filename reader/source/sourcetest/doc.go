// Package sourcetest tests the contract of source.Source. Check is the suite for sources whose records can be read
// again, such as files; Rows and Wide are sources for tests of the rooms above the seam.
package sourcetest
