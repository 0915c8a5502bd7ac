// Package ratelimit decides when to send and when to retry. A Pacer learns from the answers of a partition how much it
// accepts, and says how much to send and when; a Bucket enforces a ceiling; Backoff and Patience say how long to wait after
// failures and when to give up. Rates are finite and above zero, settle just below what a partition accepts, and follow it
// when it changes. Waits are bounded. The package knows nothing of rows, the network or other lanes, and starts no goroutine.
package ratelimit
