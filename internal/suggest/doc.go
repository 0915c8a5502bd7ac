// Package suggest finds the words that a mistyped one may mean, and quotes arguments for a shell.
package suggest
