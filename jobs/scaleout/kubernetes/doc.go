// Package kubernetes makes the manifest of a load by many pods: one Indexed Job whose pods are workers of the job
// directory.
package kubernetes
