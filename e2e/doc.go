// Package e2e tests tsimport from outside: a built binary, real HTTP, the official SDK.
//
// The module's source comes in, and TestMain builds the binary from it once. A verdict goes out.
// It does not know how anything inside works: it would not notice a rewritten engine.
package e2e
