// Command tsimport-beam is tsimport whose load can also be run by Flink and Prism, through Beam (docs/flink.md). Started by a runner, it is a worker.
package main
