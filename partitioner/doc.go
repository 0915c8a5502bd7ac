// Package partitioner cuts rows into lanes and batches. The service's partition bounds and rows from the front of a lane
// come in, the lane of a key, hot partition-key values and batches for one request each go out, and the outcome of every
// row comes back. It promises that a key is always in the lane whose bounds hold it, that no ordering key is in two
// requests at once or twice in one, that rows of one key are applied in source order, failures or not, and that each row
// becomes final exactly once. It knows nothing of files, of the network or of the clock: times are given to it.
package partitioner
