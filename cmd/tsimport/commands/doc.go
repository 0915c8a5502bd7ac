// Package commands is the command line of tsimport. Run turns flags and signals into a load, an export, a comparison or
// a server, and its error into an exit code. Stdout carries only results. Every error is one line that says what
// failed, where, why, and what to do. Only this package knows the user, the terminal and the environment.
package commands
