// Package faults decides which request gets which fault, for tests.
//
// In comes the description of a request the engine is about to serve; out goes the fault to inject, or none.
// Promised: requests are counted in the order they are asked about, and a test can wait until everything that was to
// be applied late has been applied.
// It does not know how a fault is carried out: that is package server's.
package faults
