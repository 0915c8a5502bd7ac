// Package objectstore reaches objects of OSS and of S3 or any store that is compatible with S3, in the same way: list, head, get
// a range, put, put only if absent, delete. It makes one request for each call and repeats nothing but what failed for a wrong
// clock; callers know what may be repeated. NewOSS and NewS3 make a Service. Errors are plain: an *Error is the answer of the
// service, ErrExists and ErrOther the answers to conditions, Invalid what no service was asked for, all else of the connection.
package objectstore
