// Package compatibility keeps in testdata what the program leaves on disk, a folder for each kind, and tests that the present program
// still resumes, reads or refuses each. All of it is test code: `make corpus` writes testdata again.
package compatibility
