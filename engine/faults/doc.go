// Package faults decides which requests fail in a test, and how. A Plan, made by Scripted or Random, takes the
// description of each request and returns the fault to inject, or none. It counts requests in the order of these calls.
// WaitLate waits until all delayed requests are applied. Package server injects the faults.
package faults
