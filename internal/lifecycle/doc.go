// Package lifecycle reads policies for tables that hold one period of time each. Parse reads a policy in YAML. At any
// time, the Policy assigns each period to exactly one class and returns the changes that its table needs. Unknown parts
// of a policy are errors with a line number. The package reads no rows and sends no requests; package apply does that.
//
// # Ages
//
// The age of a period is the number of periods from it to the current one, in the policy's time zone: this month has
// age 0. Periods that have not begun have negative ages and belong to the first class.
package lifecycle
