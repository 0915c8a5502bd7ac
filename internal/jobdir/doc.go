// Package jobdir keeps small objects in a directory that several machines share: a folder, OSS or S3. Open opens a
// Store by its address; its one primitive is PutAbsent. Probe refuses, and names, a place where that does not work.
// Acquire takes a Lease: at most one of its processes may act at a time, even if some are slow, paused or thought dead;
// call Lease.Check before every act. Clocks of machines are never compared.
package jobdir
