//go:build !linux

package client

import "net"

// keepUnsentLow does nothing here, so the time-out starts when the system has buffered a request.
func keepUnsentLow(net.Conn) {}
