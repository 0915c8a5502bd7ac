// Package recurring opens the resources of a recurring load: the ledger of known files, the state that outlives its
// machine, leases and locks. Open takes the options and completes a pipeline.Config; Close releases everything, as does
// an error. Options that would leave it unclear what was loaded are refused.
package recurring
