// Package errorcodes is the catalogue of codes that a user can meet: why a row is rejected, the service's answers, and
// exit codes, each with its cause and what to do. docs/errors.md is made from it.
package errorcodes
