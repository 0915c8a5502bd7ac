// Package pipeline wires a load: a Config comes in, a Report goes out. It has a plan made, lets the intake read, and
// hands batches of each lane to parallel writers. Every record read ends as written, rejected, superseded or
// unfinished, and these add up. The load stops when its context ends. It knows no formats, values, terminals or flags.
package pipeline
