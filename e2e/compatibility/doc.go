// Package compatibility keeps in testdata what the program leaves on disk, a folder for each kind, and tests that the
// current program still resumes, reads or refuses each. It is all test code: `make corpus` writes testdata again.
package compatibility
