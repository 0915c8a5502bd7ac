// Package pipeline is the wiring of a load. A Config comes in, a Report goes out; in between, readers, the encoder, the
// cutter and the writers run side by side. It promises that every record read ends as written, rejected, superseded or
// unfinished, that these add up, and that it stops when its context says so. It is the only room with goroutines and
// channels, and it knows nothing of terminals and flags.
package pipeline
