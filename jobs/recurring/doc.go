// Package recurring opens the resources of a recurring load: the ledger of files that its table has taken, the state
// that outlives its machine, and the leases and locks that keep two processes from the same work. Open takes the
// options of pipeline/options and completes a pipeline.Config; Close releases everything. After an error nothing stays
// locked. Combinations of options under which nobody could say what was loaded are refused before the first row.
package recurring
