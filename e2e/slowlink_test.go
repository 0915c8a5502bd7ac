//go:build e2e

package e2e

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowLink is a network that is slow, long or bad, but changes nothing: a proxy that passes bytes on and knows nothing of what
// they say. All its connections share the line, whose two directions do not disturb each other.
type slowLink struct {
	URL string

	bandwidth   float64       // bytes a second each way over all connections; 0 is unlimited
	delay       time.Duration // that a round trip takes longer
	stalls      float64       // share of the writes that are held back for stall, with all that follows on their connection
	stall       time.Duration
	connections int // the most at a time, more are closed at once; 0 is unlimited

	up, down line
	target   string
	listener net.Listener
	sink     atomic.Int64 // bytes of plain copies that have arrived

	mu   sync.Mutex
	open map[net.Conn]bool
	work sync.WaitGroup
}

const (
	linkPiece = 16 << 10
	// linkWindow is how much of a connection is in flight at most, each way. It is as if the receiver had a window of twice that.
	linkWindow = 128 << 10
	linkStall  = 400 * time.Millisecond
	// linkLate is how late sleeps are on a busy machine: what the line could have carried meanwhile, it carries then.
	linkLate = 50 * time.Millisecond
)

// line is a token bucket with a burst of linkLate: whoever takes from it waits until what was taken before is through.
type line struct {
	mu   sync.Mutex
	free time.Time
}

func (l *line) pass(n int, bandwidth float64) {
	if bandwidth == 0 {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if late := now.Add(-linkLate); l.free.Before(late) {
		l.free = late
	}
	l.free = l.free.Add(time.Duration(float64(n) / bandwidth * float64(time.Second)))
	wait := l.free.Sub(now)
	l.mu.Unlock()
	time.Sleep(wait) // this is the slow line
}

// start begins to pass on what comes to what listens at the address. At the end of the test nothing of the link runs.
func (s *slowLink) start(t testing.TB, address string) {
	t.Helper()
	at, err := url.Parse(address)
	must(t, err)
	s.target, s.open = at.Host, map[net.Conn]bool{}
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.URL = "http://" + s.listener.Addr().String()
	s.work.Go(s.accept)
	t.Cleanup(s.stop)
}

func (s *slowLink) stop() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *slowLink) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		full := s.connections > 0 && len(s.open) >= s.connections
		if !full {
			s.open[c] = true
		}
		s.mu.Unlock()
		if full {
			c.Close()
			continue
		}
		s.work.Go(func() {
			s.carry(c)
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
		})
	}
}

// carry serves one connection.
func (s *slowLink) carry(c net.Conn) {
	defer c.Close()
	// What lies in this machine's buffers is neither sent nor waiting to be: there is to be little of it.
	_ = c.(*net.TCPConn).SetReadBuffer(4 * linkPiece)
	far, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", s.target)
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { s.pass(far, c, &s.up) })
	both.Go(func() { s.pass(c, far, &s.down) })
	both.Wait()
}

// piece is what was read at a time.
type piece struct {
	bytes []byte
	due   time.Time
}

// pass passes on one direction of a connection, until it ends.
func (s *slowLink) pass(to, from net.Conn, l *line) {
	under := make(chan piece, linkWindow/linkPiece)
	var both sync.WaitGroup
	both.Go(func() {
		defer func() { // the other direction has no use either
			to.Close()
			from.Close()
			for range under {
			}
		}()
		for p := range under {
			time.Sleep(time.Until(p.due)) // this is the delay
			if s.stalls > 0 && rand.Float64() < s.stalls {
				time.Sleep(s.stall)
			}
			if _, err := to.Write(p.bytes); err != nil {
				return
			}
		}
	})
	for {
		b := make([]byte, linkPiece)
		n, err := from.Read(b)
		if err != nil {
			break
		}
		l.pass(n, s.bandwidth)
		under <- piece{b[:n], time.Now().Add(s.delay / 2)}
	}
	close(under)
	both.Wait()
}

// plainCopy returns the bytes a second that plain connections carry through a link of the same kind.
func (s *slowLink) plainCopy(t testing.TB, connections int, d time.Duration) float64 {
	t.Helper()
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	same := &slowLink{bandwidth: s.bandwidth, delay: s.delay, stalls: s.stalls, stall: s.stall, connections: s.connections}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := sink.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				b := make([]byte, 64<<10)
				for {
					n, err := c.Read(b)
					same.sink.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
		}
	})
	same.start(t, "http://"+sink.Addr().String())
	var senders []net.Conn
	for range connections {
		c, err := net.Dial("tcp", same.listener.Addr().String())
		must(t, err)
		senders = append(senders, c)
		work.Go(func() {
			b := make([]byte, 64<<10)
			for {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		})
	}
	time.Sleep(time.Second + s.delay) // until it flows
	before, begun := same.sink.Load(), time.Now()
	time.Sleep(d) // this is what is measured
	rate := float64(same.sink.Load()-before) / time.Since(begun).Seconds()
	for _, c := range senders {
		c.Close()
	}
	same.stop()
	sink.Close()
	work.Wait()
	return rate
}

// roundTrip returns how long a byte takes there and back.
func (s *slowLink) roundTrip(t testing.TB) time.Duration {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	same := &slowLink{bandwidth: s.bandwidth, delay: s.delay}
	same.start(t, "http://"+echo.Addr().String())
	var work sync.WaitGroup
	work.Go(func() {
		c, err := echo.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	})
	c, err := net.Dial("tcp", same.listener.Addr().String())
	must(t, err)
	b := []byte{0}
	least := time.Hour
	for range 3 {
		begun := time.Now()
		_, err = c.Write(b)
		must(t, err)
		_, err = c.Read(b)
		must(t, err)
		least = min(least, time.Since(begun))
	}
	c.Close()
	same.stop()
	echo.Close()
	work.Wait()
	return least
}
