// Package keep keeps what a later attempt needs to resume a load: the locks under which a run is found and made, its
// job, and the checkpoints with the final records. Find finds the run that a load resumes; a Checkpointer writes its
// progress.
package keep
