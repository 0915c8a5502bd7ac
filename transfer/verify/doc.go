// Package verify compares a table with its inputs, and checks before a load whether inputs can be loaded. Run takes a
// load's request and a connection and returns how many rows are equal, missing, different and surplus, with examples.
// Check returns how many records a load would reject and which keys collide. Every record and row is counted once, rows
// are made as a load makes them, and only temporary files are written.
package verify
