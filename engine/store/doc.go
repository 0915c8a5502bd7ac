// Package store keeps tables and rows in one directory, in Pebble.
//
// In come tables to create and rows to change or read, as package wire decoded them; out go outcomes per row and rows
// in primary-key order.
// Promised: an acknowledged write survives a crash (unless NoSync), a row is atomic, row order is Tablestore's, no value
// of an auto-increment column is given twice, one process owns a directory, and after a failure of the disk nothing is
// acknowledged any more and nothing panics.
// It does not know HTTP, protobuf messages, instances or accounts.
package store
