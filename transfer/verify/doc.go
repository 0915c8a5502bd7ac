// Package verify compares a table with its inputs and, before a load, checks whether inputs can be loaded. Run takes a
// load's request and a connection and returns how many rows are equal, missing, different and surplus, with examples.
// Check returns how many records a load would reject and which keys collide. Every record and row is counted exactly
// once, records become rows exactly as in a load, and only temporary files are written.
package verify
