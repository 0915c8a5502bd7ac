// Package runner has a planned load done by a job of Flink, or by Prism, Beam's runner of one process. Offer is what load offers as --runner flink and
// --runner prism. The runner's answers are never used for counts: progress, errors and the end of the load are read from the job directory.
package runner
