// Package pipeline is the wiring of a load. A Config comes in, a Report goes out. In between it has a plan made, lets
// the intake read, and hands the rows of each lane in batches to writers that run in parallel. It promises that every
// record read ends as written, rejected, superseded or unfinished, that these add up, and that it stops when its
// context says so. It knows nothing of formats, values of rows, terminals and flags.
package pipeline
