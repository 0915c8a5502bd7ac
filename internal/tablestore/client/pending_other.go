//go:build !unix

package client

import "net"

// pending returns false because the state is unknown here. A closed connection is noticed when a request is written.
func pending(net.Conn) bool { return false }
