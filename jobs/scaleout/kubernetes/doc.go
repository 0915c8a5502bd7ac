// Package kubernetes makes the manifest of a load that many pods do: one Indexed Job, each of whose pods is a worker of the job directory.
//
// This package carries no compatibility promise: only the module's root package does.
package kubernetes
