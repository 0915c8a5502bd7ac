// Package sendwindow limits the bytes of requests in flight so that each comes back long before it times out, at any
// speed and latency of the link. Open and RequestBytes say what may be sent; Sent and Landed report what was.
package sendwindow
