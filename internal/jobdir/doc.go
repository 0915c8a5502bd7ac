// Package jobdir keeps small objects in a directory that several machines share: a folder, OSS or S3. Open opens a
// Store by its address; everything rests on PutAbsent. Probe refuses, by name, a place where that does not work.
// Acquire takes a Lease: at most one process may act at a time, even if others are slow, paused or thought dead; call
// Lease.Check before every act. The clocks of different machines are never compared.
package jobdir
