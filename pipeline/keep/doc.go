// Package keep keeps what a later attempt of a load needs to resume it: the locks under which a run is found and made, its job, and the
// checkpoints that say which records are final. Find finds the run that a load resumes; a Checkpointer writes down how far it has come.
package keep
