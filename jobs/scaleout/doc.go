// Package scaleout runs one load with many processes on many machines that share only a job directory (a folder, OSS or
// S3). Make plans the load once; Open opens the plan in a worker process. A Job has four kinds of tasks. Reading a
// split puts the rows of a part of the inputs into runs, one per shard. Writing a shard, after all splits are read,
// loads its runs, whose key ranges no other shard has. Comparing a shard reads the table again. Finishing proves the
// ledger and writes the summary. Every task may run twice, concurrently and on different machines, and be killed at any
// moment: its result is one object, put only if there is none. Work takes tasks until the job is done; engines only
// decide where it runs.
package scaleout
