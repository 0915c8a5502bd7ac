// Package server answers Tablestore's HTTP protocol from a store. Open returns a Server, which takes requests over a
// port or in process, subject to the simulated partitions (package sim) and the injected faults (package faults), and
// returns signed answers. Both ways share every step from the headers to the store. Acknowledged writes are on disk.
// Unimplemented operations are refused by name. Packages wire and store know the protocol's bytes and the rows.
package server
