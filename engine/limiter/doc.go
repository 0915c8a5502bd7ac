// Package limiter models how a service may limit writes: by a token bucket, a fixed or sliding window, a queue, or a
// limit of concurrency. New makes a Limiter. Admit decides about a request under one or more limits, and says when its
// answer leaves. Nothing waits or reads a clock: equal calls, times and seeds give equal answers.
package limiter
