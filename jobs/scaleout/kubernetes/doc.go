// Package kubernetes makes the manifests of a load that many pods do: an Indexed Job for each stage of a job directory. Manifests returns
// them in the order in which they run; Apply runs them one after the other with kubectl.
//
// This package carries no compatibility promise: only the module's root package does.
package kubernetes
