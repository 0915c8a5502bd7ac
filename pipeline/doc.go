// Package pipeline wires a load: a Config comes in, a Report goes out. It makes a plan, reads through the intake, and
// hands each lane's batches to parallel writers. Every record read ends as written, rejected, superseded or unfinished,
// and the counts add up. The load stops when its context ends. It knows no formats, values, terminals or flags.
package pipeline
