// Package mutants finds changes that the tests would not notice. From a seed, it draws mutants: small changes of a
// package's functions (a negated condition, a bound off by one, a dropped statement, an ignored error). It builds them
// all into one test binary, where an environment variable selects one, and runs the tests of the package and its
// importers against each. A mutant that survives is equivalent or harmless, or reveals a missing test;
// testdata/known.txt classifies survivors. The package has only tests; "make mutants" runs TestMutants.
package mutants
