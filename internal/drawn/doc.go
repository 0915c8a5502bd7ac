// Package drawn draws loads of several inputs at random and judges the table that they leave. Draw makes the files of a Load from a
// seed, together with what each of their records means; Judge compares a table with these meanings. It shares no code with the
// loader: the meanings are those that were drawn, not those that a reader of ours found in the files.
//
// All of it is test code: TestTwoInputsLeaveTheTableThatTheyMean runs the loads. This package carries no compatibility promise: only the module's root package does.
package drawn
