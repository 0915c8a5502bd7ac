// Package contract tests the answers of engines and real instances by the rules of docs/internals/protocol*.md.
//
// It tests an engine in this process, or the instance set by TABLESTORE_TEST_ENDPOINT, TABLESTORE_TEST_INSTANCE,
// TABLESTORE_TEST_ACCESS_KEY_ID and TABLESTORE_TEST_ACCESS_KEY_SECRET, in tables that the suite deletes.
package contract
