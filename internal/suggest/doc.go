// Package suggest finds words similar to a mistyped one, and quotes arguments for a shell.
package suggest
