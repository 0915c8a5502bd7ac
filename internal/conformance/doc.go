// Package conformance finds the files on which the tests of the readers run: the part in this repository
// (reader/testdata), and the whole collection if present. Run runs a test on each, Dir returns the larger one, Main
// runs packages with many small loads, stores or files. NotForRaces skips a test under the race detector. Must and Try
// end a test on an unexpected error; Equal, MustEqual, Same, Contains, Is, Refused, True and MustTrue check values.
package conformance
