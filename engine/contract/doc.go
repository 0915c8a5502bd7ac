// Package contract states Tablestore's answers, rule by rule of docs/internals/protocol*.md, also for real instances.
//
// An endpoint (an engine in this process, or the instance set by TABLESTORE_TEST_ENDPOINT, TABLESTORE_TEST_INSTANCE,
// TABLESTORE_TEST_ACCESS_KEY_ID and TABLESTORE_TEST_ACCESS_KEY_SECRET) is tested in tables that the suite deletes.
package contract
