// Package keep keeps what a later attempt needs to resume a load: the locks under which a run is found or made, its
// job, and checkpoints of the final records. Find finds the run to resume; a Checkpointer writes its progress.
package keep
