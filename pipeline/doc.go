// Package pipeline runs a load, given a Config, and returns a Report. It makes a plan, reads through the intake, and
// hands each lane's batches to parallel writers. Every record that is read has one outcome, and the counts add up. The
// load stops when its context ends. Other packages handle formats, values, terminals and flags.
package pipeline
