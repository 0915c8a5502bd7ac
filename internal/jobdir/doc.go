// Package jobdir keeps small objects in a directory that several machines share: a folder, OSS or S3. Open makes a Store of an
// address; its one primitive is PutAbsent. Probe refuses, by name, a place where that does not work. Acquire takes a Lease: of all
// processes that ask for one, at most one may act at a time, even if some are slow, paused or thought dead; Lease.Check is to be asked
// before every act. Clocks of machines are never compared. The package knows nothing of loads.
package jobdir
