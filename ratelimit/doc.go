// Package ratelimit decides when to send and when to retry. A Pacer learns from a partition's answers how much it
// accepts, and says how much to send and when; a Bucket enforces a ceiling; Backoff and Patience say how long to wait
// after failures and when to give up. Rates are finite and above zero, settle just below what a partition accepts, and
// follow its changes. Waits are bounded. It does not know rows or the network, and starts no goroutine.
package ratelimit
