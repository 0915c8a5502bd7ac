// Package status serves the state of a running load over HTTP, as JSON or Prometheus metrics. Listen returns a Server,
// whose Serve the caller runs. The server asks for the state once per request, and does not delay the load.
package status
