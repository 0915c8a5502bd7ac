// Package compress reads compressed files: the bytes of a file come in, the bytes it was made from go out. Truncated,
// damaged or unfinished data, and whatever follows the last member, is an error that names the file and about where in
// it, after every byte before it was delivered. Memory is bounded by MaxWindow, whatever a header asks for. It knows
// nothing of what the bytes mean, and starts no goroutine: files of independent blocks are cut into Pieces instead,
// which any number of Inflaters can inflate at once.
package compress
