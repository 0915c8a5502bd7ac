//go:build !linux

package client

import "net"

// keepUnsentLow does nothing: the time-out then runs from when the system has taken a request.
func keepUnsentLow(net.Conn) {}
