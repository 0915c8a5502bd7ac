// Package partitioner assigns rows to lanes and cuts batches. Map.Find returns a key's lane, from the service's
// partition bounds. A Cutter takes rows from the front of a lane, cuts them into batches for one request each, and
// takes back every row's outcome; HotKeys finds partition-key values with too many rows. No ordering key is in two
// requests at once or twice in one, the rows of a key are applied in source order even if requests fail, and each row
// becomes final exactly once. The package does not know files, the network or the clock: the caller passes the time.
package partitioner
