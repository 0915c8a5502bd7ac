// Package exitcode has the exit codes of commands, which tell their callers what to do next.
package exitcode
