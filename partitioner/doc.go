// Package partitioner assigns rows to lanes and cuts batches. Map.Find returns a key's lane by the partition bounds. A
// Cutter cuts a lane's rows into batches, one per request, and takes back each row's outcome; HotKeys finds values with
// too many rows. A key is never in two requests at once or twice in one; its rows are applied in source order, and each
// becomes final once. Callers pass the current time.
package partitioner
