// Package wire reads and writes what travels between a Tablestore client and the engine.
//
// In come the bytes of protobuf requests, PlainBuffer rows and the x-ots headers; out go typed requests whose
// fields are views into those bytes, and the bytes of responses and errors.
// Promised: no input, however hostile, panics or allocates more than a small multiple of its own length;
// checksums, limits and names are judged here and nowhere else, with the service's own codes and messages.
// It does not know tables, storage or time.
package wire
