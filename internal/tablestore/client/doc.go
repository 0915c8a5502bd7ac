// Package client connects to Tablestore. New returns the official SDK's client for a Target; Connect returns a
// Connection for requests encoded elsewhere; Admin creates, changes and describes tables and their partitions. Classify
// assigns errors to classes. Every request ends with the run's context. The package does not repeat a write that may
// have been applied, and no error contains a secret.
package client
