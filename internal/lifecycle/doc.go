// Package lifecycle reads policies for tables that hold one period of time each. Parse reads a policy in YAML; the
// Policy gives each period's class at a moment, exactly one, and the changes that its table needs. A policy with an
// unknown part is refused with its line. The package reads no rows and sends no requests: package apply does.
//
// # Ages
//
// A period's age is the number of periods from it to the one that contains now, by the calendar of the policy's zone:
// this month has age 0. Periods that have not begun have negative ages and belong to the first class.
package lifecycle
