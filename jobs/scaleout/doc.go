// Package scaleout does one load with many processes on many machines, which have nothing but a job directory together (a folder, OSS or S3).
// Make plans the load once; Open opens the plan in a process that works on it. A Job has four tasks: ReadSplit puts the rows of a part of the
// inputs into runs, one for each shard; WriteShard, when all splits are read, loads the runs of a shard, which holds ranges of keys that no
// other shard has; Compare compares the table with a shard; Finish proves the ledger and writes the summary. Every task may run twice, at the
// same time and on different machines, and be killed at any moment: its result is one object that is put if there is none. Work takes
// tasks until nothing is left; an engine calls them by their numbers.
//
// This package carries no compatibility promise: only the module's root package does.
package scaleout
