// Package intake brings the inputs to the lanes. Given a Plan and a partition map, Flow.Splits delivers parsed splits
// with their encoded rows in blocks by lane and their rejects, in source order or that of a schedule, which keeps each
// key's order. Every record is in exactly one split. Records before an unreadable part are delivered, and Splits closes
// only after everything was handed out. It knows no batches, rates or network.
package intake
