// Package store keeps tables and rows in a Pebble database. Open returns a Store, which creates tables, changes
// rows, and reads them in primary-key order. Acknowledged writes survive a crash (unless NoSync is set), row changes
// are atomic, auto-increment values are never repeated, and only one process can open a directory. After a disk failure
// no write is acknowledged.
package store
