// Package sendwindow decides how many bytes of requests a load has in flight, so that each comes back long before it
// times out, regardless of the speed and latency of the link. New makes a Window; Open and RequestBytes say what may be
// sent, Sent and Landed report what was. It is given the time, starts nothing and waits for nothing.
package sendwindow
