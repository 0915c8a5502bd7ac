// Package status shows a running load over HTTP. Listen returns a Server that asks for the state of the load once per
// request and answers with JSON, metrics in Prometheus' text format, or a page that links both. No request waits long
// or disturbs the load; the answer says if a load is not yet writing or is ending. The caller runs Serve.
package status
