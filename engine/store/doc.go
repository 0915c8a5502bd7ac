// Package store keeps tables and rows in one directory, in Pebble. Open returns a Store, which creates tables, and
// changes and reads rows as package wire decoded them, in primary-key order. An acknowledged write survives a crash
// (unless NoSync is set), a row is atomic, rows are in Tablestore's order, an auto-increment value is never given
// twice, and one process owns a directory. After a disk failure nothing is acknowledged any more, and nothing panics.
// The package knows nothing of HTTP, instances or accounts.
package store
