// Package limiter models how a service may limit writes: a token bucket, a fixed or sliding window, a queue, a limit of
// what is served at once. New makes a limit; Admit decides about a request under one limit or several, and says when
// its answer leaves. Nothing waits or reads a clock: the same calls, times and seed give the same answers.
package limiter
