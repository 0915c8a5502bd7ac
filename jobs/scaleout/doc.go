// Package scaleout does one load with many processes on many machines, which have nothing but a job directory together (a folder, OSS or S3).
// Make plans the load once; Open opens the plan in a process that works on it. A Job has four kinds of tasks: reading a split puts the rows of
// a part of the inputs into runs, one for each shard; writing a shard, when all splits are read, loads its runs, which hold ranges of keys
// that no other shard has; comparing it reads the table again; finishing proves the ledger and writes the summary. Every task may run twice,
// at the same time and on different machines, and be killed at any moment: its result is one object that is put if there is none. Work takes
// tasks until the job is done; engines only decide where it runs.
package scaleout
