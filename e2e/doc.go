// Package e2e tests tsimport from outside: a built binary, real HTTP, the official SDK.
//
// In comes the module's source, from which TestMain builds the binary once. Out goes nothing but a verdict.
// It does not know how anything inside works: it would not notice a rewritten engine.
package e2e
