// Package partitioner assigns rows to lanes and cuts batches. Map.Find returns the lane of a key, from the service's partition
// bounds. A Cutter takes rows from the front of a lane, cuts them into batches for one request each, and takes back the
// outcome of every row; HotKeys finds partition-key values with too many rows. No ordering key is in two requests at once or
// twice in one, the rows of a key are applied in source order whether requests fail or not, and each row becomes final exactly
// once. The package knows nothing of files, the network or the clock: the caller passes the time.
package partitioner
