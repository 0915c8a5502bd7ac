// Package status shows a running load over HTTP. The state of a load comes in, asked for once a request; pages go out: a
// JSON object, metrics in Prometheus' text format, and a page that names both. It promises that no request waits long or
// disturbs the load, and that a load which has not begun to write, or is ending, is said to be so. It knows nothing of
// signals and terminals, and starts no goroutine: its caller runs Serve in one.
package status
