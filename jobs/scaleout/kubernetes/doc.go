// Package kubernetes makes a load's manifest: an Indexed Job whose pods are workers of the job directory.
package kubernetes
