// Package ratelimit decides when to send and when to retry. A Pacer learns a partition's rate from its answers and says
// how much to send and when; a Bucket enforces a ceiling; Backoff and Patience say how long to wait and when to give
// up. Rates are finite, above zero and just below what a partition accepts.
package ratelimit
