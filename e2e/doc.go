// Package e2e tests tsimport from outside: a built binary, real HTTP, the official SDK.
//
// In comes the module's source, from which TestMain builds the binary once. Out goes nothing but a verdict.
// Promised: the contract suite (files contract_*) states what Tablestore answers, and holds for `tsimport serve` and for
// a real instance alike; with TABLESTORE_TEST_ENDPOINT, TABLESTORE_TEST_INSTANCE, TABLESTORE_TEST_ACCESS_KEY_ID and
// TABLESTORE_TEST_ACCESS_KEY_SECRET set it runs against that instance, in tables of its own that it deletes again.
// It does not know how anything inside works: it would not notice a rewritten engine.
//
// This package carries no compatibility promise: only the module's root package does.
package e2e
