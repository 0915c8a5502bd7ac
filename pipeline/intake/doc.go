// Package intake brings the inputs to the lanes. A Plan and a partition map come in; parsed splits go out through
// Flow.Splits, each with its encoded rows in blocks by lane and its rejected records. Splits come in source order or in
// that of a schedule, which keeps the order of each key. It promises that every record is in exactly one split, as a
// row or as a reject with its place in the input, that records before an unreadable part are handed out first, and that
// Splits is closed only after everything has been handed out. It knows nothing of batches, rates and the network.
package intake
