// Package stages has a planned load as a pipeline of Beam. Build makes it from the numbers of tasks; a worker of any runner does the tasks in
// the job directory. Only numbers of splits and shards travel through the runner: rows are in the job directory. Every task may run
// twice and be killed at any moment, so the runner may do what it likes with its elements. A process does one task at a time, which
// uses all of its processors.
package stages
