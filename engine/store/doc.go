// Package store keeps tables and rows in one directory, in Pebble. Open returns a Store, which creates tables, and
// changes and reads rows in primary-key order. An acknowledged write survives a crash (unless NoSync is set), a row is
// atomic, an auto-increment value is never given twice, and one process owns a directory. After a disk failure nothing
// is acknowledged.
package store
