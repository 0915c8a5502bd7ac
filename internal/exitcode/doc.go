// Package exitcode has the codes that commands end with, so that whoever runs them knows what to do next.
package exitcode
