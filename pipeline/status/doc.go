// Package status shows a running load over HTTP as JSON, Prometheus metrics or a page that links both. Listen returns a
// Server that asks for the state once per request and does not delay the load. The caller runs Serve.
package status
