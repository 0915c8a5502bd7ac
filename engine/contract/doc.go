// Package contract states what Tablestore answers, rule by rule of docs/internals/protocol*.md, and holds for the engine and for a real instance alike.
//
// In comes an endpoint: an engine in this process, or with TABLESTORE_TEST_ENDPOINT, TABLESTORE_TEST_INSTANCE,
// TABLESTORE_TEST_ACCESS_KEY_ID and TABLESTORE_TEST_ACCESS_KEY_SECRET set that instance, in tables of the suite's own that it deletes again.
// Out goes nothing but a verdict. All of it is test code, and knows nothing but the wire: it would not notice a rewritten engine.
package contract
