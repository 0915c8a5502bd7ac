// Package lifecycle reads policies for tables that hold one period of time each. Parse reads a policy in YAML; with the
// names of tables and a time, the Policy gives the class of each period and the changes that it needs. Every period
// belongs to exactly one class at any time, a policy with an unknown part is refused with its line, and each period has
// exactly one name. The package reads no rows and sends no requests: package apply does.
//
// # Ages
//
// The age of a period is the number of periods from it to the one that contains now, by the calendar of the policy's
// zone: this month has age 0 from its first instant to its last, last month age 1. Periods that have not begun have
// negative ages and belong to the first class.
package lifecycle
