package client

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// Values of Target.Compress. The protocol's deflate is a zlib stream, as the SDKs for Java and C++ send it.
const (
	CompressOff = "off" // no request is compressed
	CompressOn  = "on"  // every request that becomes smaller is compressed
)

func checkCompress(mode string) error {
	if slices.Contains([]string{"", CompressOff, CompressOn}, mode) {
		return nil
	}
	return fmt.Errorf("compress %q: want on or off", mode)
}

const (
	// leastCompressed is the size of the smallest body worth compressing. Headers and responses are not compressed.
	leastCompressed = 1 << 10
	// smaller is the largest ratio of the compressed to the original size with which a compressed body is sent.
	smaller = 0.9
)

// compression compresses request bodies. It is safe for concurrent use. nil compresses nothing.
type compression struct {
	writers chan *zlib.Writer // one per processor; each takes about a megabyte

	mu     sync.Mutex
	proven bool // the service has accepted a compressed request
	never  bool // the service has refused a compressed request
}

func newCompression(mode string) *compression {
	if mode != CompressOn {
		return nil
	}
	c := &compression{writers: make(chan *zlib.Writer, runtime.GOMAXPROCS(0))}
	for range cap(c.writers) {
		c.writers <- nil
	}
	return c
}

func (c *compression) wanted(size int) bool {
	if c == nil || size < leastCompressed {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.never
}

// deflate appends the compressed body to dst, or returns nil if compression hardly reduces the body.
func (c *compression) deflate(dst, body []byte) []byte {
	to := &limitedBuffer{bytes: dst, most: len(dst) + int(smaller*float64(len(body)))}
	w := <-c.writers
	if w == nil {
		w = zlib.NewWriter(to)
	} else {
		w.Reset(to)
	}
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	c.writers <- w
	if err != nil {
		return nil
	}
	return to.bytes
}

type limitedBuffer struct {
	bytes []byte
	most  int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(b.bytes)+len(p) > b.most {
		return 0, errNotSmaller
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

var errNotSmaller = fmt.Errorf("less than %.0f %% smaller", 100*(1-smaller))

// answered records the error of a compressed request, or nil, and reports whether to send the request again without
// compression. A server that never accepted a compressed request may not support compression, so its refusal says
// nothing about the rows. The request is repeated only if, by the documented meaning of the code, nothing was applied.
func (c *compression) answered(err error) (plainly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.proven = true
		return false
	}
	if c.proven || !isAnswer(err) {
		return false
	}
	switch Classify(err) {
	case Content, Permanent, Fatal:
		return true
	case Unrecognized, Ambiguous:
		c.never = true
	}
	return false
}

// refused records that a request was refused with compression but accepted without.
func (c *compression) refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.never = true
}

// compress replaces the body in buf with a compressed one. It returns the original size, or 0 if it changed nothing.
func (s *Sender) compress() (was int) {
	body := s.buf[headRoom:]
	if !s.c.compression.wanted(len(body)) {
		return 0
	}
	dst := s.plain
	if large, _ := largeBuffers.Get().(*[]byte); large != nil {
		dst = *large
	}
	s.plain = nil
	packed := s.c.compression.deflate(append(dst[:0], room[:]...), body)
	if packed == nil {
		s.plain = giveLargeBack(dst)
		return 0
	}
	s.plain, s.buf = s.buf, packed
	return len(body)
}
