// Package objectstore gives OSS, S3 and S3-compatible stores one interface: list, head, get a range, put, put only if
// absent, delete. NewOSS and NewS3 make a Service. A call makes one request, and repeats it only if the clock was
// wrong; other retries are up to the caller. An *Error is an error response of the service, ErrExists and ErrOther mean
// that a condition was not met, a retry would repeat an *Invalid, and other errors come from the connection.
package objectstore
