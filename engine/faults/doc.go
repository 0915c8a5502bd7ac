// Package faults decides which requests fail in a test, and how. A Plan, made by Scripted, by Random or by hand, takes
// the description of each request and returns the fault to inject, or none. It counts requests in the order of these
// calls. Package server injects the faults.
package faults
