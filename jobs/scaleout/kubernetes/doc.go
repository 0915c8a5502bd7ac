// Package kubernetes makes the manifest of a load that many pods do: one Indexed Job, each of whose pods is a worker of the job directory.
package kubernetes
