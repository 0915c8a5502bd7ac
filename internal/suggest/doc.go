// Package suggest finds the words that a mistyped one was meant to be: names of commands, flags, keys, columns and functions.
package suggest
