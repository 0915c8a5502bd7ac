// Package model is a second, tiny Tablestore that the engine is tested against: slices, maps and loops, nothing clever.
// It takes changes and reads as plain Go values with the time at which they happen, and returns the answers of the
// service. Each rule is written from the specification a second time and shares nothing with the engine, so that a
// mistake in the engine is not repeated here. Its tests translate to and from the official SDK.
package model
