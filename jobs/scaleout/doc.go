// Package scaleout runs one load with many processes on many machines that share only a job directory (a folder, OSS or
// S3). Make plans the load once. Open opens the plan in a worker, as a Job with these tasks: reading a split puts rows
// of the inputs into runs, one per shard; writing a shard loads its runs, whose keys no other shard has; comparing a
// shard rereads the table; finishing proves the ledger and writes the summary. Any task may run twice, concurrently and
// on different machines, and be killed, because its result is one object, which is put only if there is none. Work
// takes tasks until the job is done.
package scaleout
