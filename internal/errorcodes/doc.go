// Package errorcodes is the catalogue of all codes that a user can see: reject reasons, the service's error codes and
// exit codes, each with its cause and what to do. docs/errors.md is made from it.
package errorcodes
