// Package objectstore gives OSS, S3 and S3-compatible stores one interface: list, head, get a range, put, put only if
// absent, delete. A call makes one request, and repeats it only if the clock was wrong; other retries are up to the
// caller. NewOSS and NewS3 make a Service. An *Error is the service's refusal, ErrExists and ErrOther mean that a
// condition was not met, an *Invalid was not sent, and all other errors are the connection's.
package objectstore
