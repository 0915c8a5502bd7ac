// Package keep keeps what a later attempt needs to resume a load: its job, and checkpoints of the final records. Find
// finds the run to resume, under locks; a Checkpointer writes the run's progress.
package keep
