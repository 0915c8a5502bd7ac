// Package mutants finds changes that the tests would not notice. It draws small changes of a room's functions from a
// seed (a negated condition, a bound that is off by one, a dropped statement, an ignored error), builds all of them
// into one test binary, each beside the original and selected by an environment variable, and runs the tests of the
// room and of those that import it against each. A change that no test fails for survives: it is equivalent, or
// harmless, or shows a missing test. A person notes which in testdata/known.txt.
//
// All of it is test code, which "make mutants" runs as TestMutants. Declarations outside functions are not changed.
package mutants
