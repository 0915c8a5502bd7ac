// Package runmetrics tells Prometheus how a command has ended, by a file for node_exporter's textfile collector.
// pipeline/status has the metrics of a running load.
package runmetrics
