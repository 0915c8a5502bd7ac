// Package client connects to Tablestore. New returns the official SDK's client for a Target; Connect returns a
// Connection for requests encoded elsewhere; Admin creates, changes and describes tables and their partitions. Classify
// sorts errors into classes. Every request ends with the run's context, no write that may have been applied is
// repeated, and no error contains a secret.
package client
