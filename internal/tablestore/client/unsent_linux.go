package client

import (
	"net"
	"syscall"
)

// tcpNotSentLowAt is TCP_NOTSENT_LOWAT, which package syscall lacks.
const tcpNotSentLowAt = 25

// keepUnsentLow limits a connection's unsent bytes, because filling the system's large buffers is not progress.
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
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowAt, 2*linkPiece) // harmless if unsupported
	})
}
