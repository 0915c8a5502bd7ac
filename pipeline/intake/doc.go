// Package intake reads the inputs for the lanes. Given a Plan and a partition map, Flow.Splits delivers parsed splits:
// encoded rows in blocks by lane, and rejects. Splits arrive in source order, or by a schedule that keeps
// each key's order. Every record is in one split. Records before an unreadable part are delivered.
package intake
