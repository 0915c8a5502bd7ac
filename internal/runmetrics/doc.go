// Package runmetrics writes how a command ended to a file that Prometheus reads through node_exporter's textfile
// collector. Package pipeline/status provides the metrics of a running load.
package runmetrics
