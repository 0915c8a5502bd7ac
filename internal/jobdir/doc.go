// Package jobdir keeps small objects in a directory that several machines share: a folder, OSS or S3. Open makes a
// Store of an address; its one primitive is PutAbsent. Probe refuses, by name, a place where that does not work.
// Acquire takes a Lease: at most one of its processes may act at a time, even if some are slow, paused or thought dead;
// call Lease.Check before every act. Clocks of machines are never compared. The package does not know loads.
package jobdir
