// Package conformance locates the test files of the readers: the part in this repository (reader/testdata) and, if
// present, the whole collection. Run runs a test on each, and Dir returns the larger one. Main runs the tests of
// packages with many small loads, stores or files. NotForRaces skips a test under the race detector. Must and Try end a
// test on an unexpected error; Equal, MustEqual, Same, Contains, Is, Refused, True and MustTrue check values.
package conformance
