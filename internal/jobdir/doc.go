// Package jobdir keeps small objects in a directory that several machines share: a folder, OSS or S3. Open opens a
// Store by its address. Leases depend on Store.PutAbsent; Probe returns an error for a place where it does not work.
// Acquire takes a Lease: only its holder may act, even if other processes are slow, paused or presumed dead. Call
// Lease.Check before every action. The clocks of different machines are never compared.
package jobdir
