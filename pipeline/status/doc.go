// Package status shows a running load over HTTP. Listen returns a Server that asks for the state of the load once per
// request and answers with JSON, metrics in Prometheus' text format, or a page that links both. No request waits long
// or disturbs the load; the answer says so while a load has not started writing or is ending. The package starts no
// goroutine: its caller runs Serve in one.
package status
