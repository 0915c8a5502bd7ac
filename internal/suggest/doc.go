// Package suggest helps messages to say what to do: it finds the words that a mistyped one was meant to be (names of commands, flags, keys, columns and
// functions), and quotes the arguments of commands for a shell.
package suggest
