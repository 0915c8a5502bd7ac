// Package ratelimit decides when to send and when to retry. A Pacer learns a partition's rate from its answers and says
// how much to send and when; Shared and Table do so for all lanes of a table or instance together; Outages tells
// outages from a lack of capacity; a Bucket enforces a ceiling; Backoff and Patience say how long to wait and when to
// give up.
package ratelimit
