// Package exitcode defines the exit codes of commands, which tell callers what to do next.
package exitcode
