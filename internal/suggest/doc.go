// Package suggest makes messages helpful: it finds the words that a mistyped one may mean (names of commands, flags,
// keys, columns and functions), and quotes the arguments of commands for a shell.
package suggest
