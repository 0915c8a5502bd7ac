// Package model is a second, tiny Tablestore to judge the engine by: slices, maps and loops, nothing clever.
//
// In come changes and reads in plain Go values with the time they happen at; out go the answers the service would give.
// Promised: every rule is written down from the specification once more, so that a mistake in the engine is not
// repeated here, and nothing is shared with the engine.
// It does not know the protocol, disks, goroutines or speed: its tests translate to and from the official SDK.
package model
