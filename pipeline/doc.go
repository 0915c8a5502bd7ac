// Package pipeline runs a load, given a Config, and returns a Report. It makes a plan, reads through the intake, and
// hands each lane's batches to parallel writers. Every record read ends as written, rejected, superseded or unfinished,
// and the counts add up. The load stops when its context ends. Formats, values, terminals and flags are left to others.
package pipeline
