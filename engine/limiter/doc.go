// Package limiter models how a service may limit writes: by a token bucket, a fixed or sliding window, a queue, or a
// concurrency limit. New makes a Limiter. Admit applies one or more limits to a request, and returns the delay of its
// answer. Nothing waits or reads a clock: equal calls, times and seeds give equal answers.
package limiter
