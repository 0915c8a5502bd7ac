// Package e2e tests tsimport from outside: a built binary, real HTTP, the official SDK.
//
// TestMain builds the binary from the module's source once. The tests do not depend on internals, so they also hold for
// a rewritten engine.
package e2e
