// Package faults decides which request gets which fault, for tests. A Plan, from Scripted or Random, receives the
// description of each request to be served, and returns the fault to inject, or none. Requests are counted in the order
// of these calls, and WaitLate waits until all delayed requests are applied. Package server carries the faults out.
package faults
