//go:build !linux

package client

import "net"

// keepUnsentLow does nothing here, so a time-out begins when the system has buffered a request.
func keepUnsentLow(net.Conn) {}
