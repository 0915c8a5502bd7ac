// Package server answers Tablestore's HTTP protocol from a store.
//
// In come HTTP requests, over a port or in process; out go signed answers, as package sim and a plan of faults let them.
// Promised: both ways share every step from the headers to the store, a write is answered only when it is on disk, and
// what is not implemented is refused by name rather than half done.
// It does not know rows, keys or bytes of the protocol: those are package wire's and package store's.
package server
