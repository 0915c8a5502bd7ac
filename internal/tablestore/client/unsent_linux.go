package client

import (
	"net"
	"syscall"
)

// Number of the option in Linux, which package syscall does not have.
const tcpNotSentLowAt = 25

// keepUnsentLow lets a connection take little more than the network takes of it. The buffers of the system hold megabytes, and a
// write that only fills them says nothing about the progress of a request.
func keepUnsentLow(c net.Conn) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowAt, 2*linkPiece) // a system without it has none
	})
}
