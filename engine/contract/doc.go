// Package contract states Tablestore's answers, rule by rule of docs/internals/protocol*.md, also for real instances.
//
// An endpoint comes in: an engine in this process, or the instance set by TABLESTORE_TEST_ENDPOINT,
// TABLESTORE_TEST_INSTANCE, TABLESTORE_TEST_ACCESS_KEY_ID and TABLESTORE_TEST_ACCESS_KEY_SECRET, in tables of the suite
// that it deletes again. A verdict goes out. It is all test code and knows only the wire.
package contract
