// Package server implements Tablestore's HTTP protocol on a store. Open returns a Server, which takes requests over a
// port or in process, applies simulated partitions (package sim) and injected faults (package faults), and returns
// signed answers. Both ways share every step from the headers to the store. Acknowledged writes are on disk unless
// Options says otherwise. Package wire encodes the protocol, package store holds the rows.
package server
