// Package errorcodes lists all codes that a user can see: reject reasons, the service's error codes and exit codes,
// each with its cause and remedy. docs/errors.md is generated from it.
package errorcodes
