// Package runmetrics reports to Prometheus how a command ended, in a file for node_exporter's textfile collector.
// pipeline/status has the metrics of a running load.
package runmetrics
