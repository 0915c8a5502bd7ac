// Package mutants finds changes that the tests would not notice. It draws small changes of a room's functions from a
// seed (a negated condition, a bound off by one, a dropped statement, an ignored error), builds all into one test
// binary, selected by an environment variable, and runs the tests of the room and its importers against each. A
// survivor is equivalent or harmless, or reveals a missing test; testdata/known.txt classifies survivors.
//
// The package has only tests; "make mutants" runs TestMutants. Declarations outside functions are not changed.
package mutants
