// Package wire reads and writes the messages between a Tablestore client and the engine: protobuf messages, PlainBuffer
// rows and the x-ots headers. Decoded requests are typed views into the bytes of the request; Append functions write
// the answers. No input, however hostile, panics or allocates more than a small multiple of its own length. Checksums,
// limits and names are checked only here, with the service's own codes and messages.
package wire
