// Package limiter models how a service may limit writes: a token bucket, a fixed or a sliding window, a queue, a limit
// of what is served at once. New makes the limit of a partition, a table or an instance; Admit decides about a request
// under one limit or several at once, and says after how long its answer leaves. Time is given: nothing here waits or
// reads a clock, and the same calls with the same times and seed give the same answers.
package limiter
