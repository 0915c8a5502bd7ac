// Package sqltest reads tables of servers for the tests of their rooms, and gives the servers a place to run.
//
// This package carries no compatibility promise: only the module's root package does.
package sqltest
