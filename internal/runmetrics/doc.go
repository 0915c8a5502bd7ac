// Package runmetrics tells Prometheus how a command has ended, by a file for the textfile collector of node_exporter.
// Metrics of a load while it runs are pipeline/status's.
package runmetrics
