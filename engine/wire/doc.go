// Package wire decodes requests to the engine and encodes its answers: protobuf messages, PlainBuffer rows and x-ots
// headers. Decoded requests are typed views into the bytes of the request; Append functions encode answers. No input,
// however hostile, causes a panic or allocates more than a small multiple of its length. Checksums, limits and names
// are checked only here, with the service's codes and messages.
package wire
