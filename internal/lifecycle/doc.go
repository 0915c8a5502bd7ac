// Package lifecycle reads policies for tables that hold one period of time each. Parse reads a policy in YAML; the
// Policy assigns each period to exactly one class at a moment, and returns the changes that its table needs. Unknown
// parts of a policy are errors with a line number. The package reads no rows and sends no requests: package apply does.
//
// # Ages
//
// A period's age is the number of periods from it to the current one, by the calendar of the policy's zone: this month
// has age 0. Periods that have not begun have negative ages and belong to the first class.
package lifecycle
