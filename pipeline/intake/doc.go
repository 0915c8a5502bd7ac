// Package intake brings the inputs to the lanes. A Plan and a partition map come in; parsed splits go out, each with its
// rows encoded and divided into blocks by lane and with the records that were refused, in source order or, where order
// does not matter, as lanes are hungry. It promises that every record is in exactly one split, as a row or as a reject
// with its place in the input, that what stands before a part that cannot be read is handed out first, and that Splits is
// closed only when all was. It knows nothing of batches, rates and the network.
package intake
