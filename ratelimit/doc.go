// Package ratelimit decides when to send and when to retry. What was sent, what of it was accepted and how many attempts
// failed come in; batch sizes, sending times, waiting times and the end of patience go out. It promises rates that are
// finite and above zero, that settle just under what a partition accepts and follow it when it changes, and waits that
// stay bounded. It knows nothing of rows' contents, of the network or of other lanes, and starts no goroutine.
package ratelimit
