// Package recurring opens the resources of a recurring load: the ledger of known files, the state that outlives its
// machine, leases and locks. Open takes the options and completes a pipeline.Config. Close releases all resources, and
// so does an error of Open. Options that would leave it unclear what was loaded are refused.
package recurring
