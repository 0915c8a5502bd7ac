// Package errorcodes is the catalogue of codes that a user can meet: why a row is rejected, what the service answers, and how the
// program ends, each with its cause and what to do. docs/errors.md is made from it.
package errorcodes
