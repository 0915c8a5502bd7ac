// Package lifecycle applies a policy to tables that hold a period of time each. A policy in YAML, names
// of tables and a time come in; the class of each period and what has to change go out. It promises that every period
// belongs to exactly one class, regardless of the time, that a policy with anything in it that it does not understand is
// refused with its line, and that a name is made of a period in one way only. It knows nothing of rows, files and the
// service: it neither changes nor asks anything.
//
// # Ages
//
// The age of a period is the number of periods from it to the one that the policy's now lies in, by the calendar of the
// policy's zone: this month has age 0 from its first instant to its last, last month age 1. Periods that have not begun
// have negative ages and belong to the first class.
package lifecycle
