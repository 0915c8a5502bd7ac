// Package client connects to Tablestore. New returns the official SDK's client for a Target; Connect returns a
// Connection for requests encoded elsewhere; Admin creates, changes and describes tables and their partitions. Errors
// are sorted into classes (ClassifyCode). Every request ends with the run's context, no request that may have been
// applied is repeated, and no secret appears in an error.
package client
