//go:build !unix

package client

import "net"

// pending cannot be known here: a connection that the service has closed is noticed when a request is written to it.
func pending(net.Conn) bool { return false }
