// Package compatibility keeps files that earlier versions left on disk in testdata, a folder for each kind, and tests
// that the current program still resumes, reads or refuses them. It has only tests; `make corpus` adds to testdata.
package compatibility
