// Package sendwindow limits the bytes of requests in flight so that each is answered long before it times out, at any
// speed and latency of the link. Open and RequestBytes tell how much may be sent; Sent and Landed take what was sent.
package sendwindow
