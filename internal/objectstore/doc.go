// Package objectstore accesses objects of OSS, S3 and S3-compatible stores in the same way: list, head, get a range,
// put, put only if absent, delete. It makes one request a call and repeats it only after a wrong clock; callers know
// what may be repeated. NewOSS and NewS3 make a Service. Errors are plain: an *Error is the service's answer, ErrExists
// and ErrOther the answers to conditions, Invalid a request not sent, all others are the connection's.
package objectstore
