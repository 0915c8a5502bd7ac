// Package sqltest reads tables of servers for the tests of their rooms.
//
// This package carries no compatibility promise: only the module's root package does.
package sqltest
