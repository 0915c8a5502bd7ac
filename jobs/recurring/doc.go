// Package recurring is what a load that comes again has open: which files its table has taken, the state that outlives its machine, and the leases and locks that
// keep two processes from the same work. Open takes the options of pipeline/options and completes a pipeline.Config; Close gives back what was taken. It
// promises that after an error nothing stays taken, and that combinations with which nobody could say what was loaded are refused before the first row.
package recurring
