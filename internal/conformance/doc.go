// Package conformance finds the files that the tests of the readers run on: the part of them that is in this repository
// (reader/testdata), and the whole collection where a machine has it. Call Run to run a test on each, Dir for the larger one,
// Main where tests make many small loads, stores or files of their own, Must and Try where an error is not expected, Equal, MustEqual, Same, Contains, Is and
// Refused where one value, several, a part of a text and an error are, and True and MustTrue where a condition is.
package conformance
