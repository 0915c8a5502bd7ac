package reader

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"

	"example.com/tsimport/reader/source"
)

func covers(c source.Chain) int64 { return c.Every * int64(len(c.Sums)) }

// sumAt returns the sum of the first n bytes, or false if there is none.
func sumAt(c source.Chain, n int64) (uint64, bool) {
	if c.Every <= 0 || n%c.Every != 0 || n/c.Every < 1 || n/c.Every > int64(len(c.Sums)) {
		return 0, false
	}
	return c.Sums[n/c.Every-1], true
}

const (
	defaultChainBytes = 8 << 20
	maxSums           = 512 // above this number, every other sum is dropped
)

// chainer computes the chain of a stream as it is read, and compares it with the chain of an earlier reading.
type chainer struct {
	name string
	unit int64
	sum  hash.Hash
	read int64

	mu   sync.Mutex // chain is called while the stream is read
	made source.Chain
	want source.Chain
}

func newChainer(name string, unit int64) *chainer {
	return &chainer{name: name, unit: unit, sum: sha256.New(), made: source.Chain{Every: unit}}
}

// Write adds the next bytes of the stream. It fails if they differ from the earlier reading.
func (c *chainer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part := b[:min(int64(len(b)), c.unit-c.read%c.unit)]
		c.sum.Write(part)
		c.read += int64(len(part))
		b = b[len(part):]
		if c.read%c.unit == 0 {
			if err := c.note(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (c *chainer) expect(known source.Chain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = known
}

// note records the sum of the bytes so far. It fails if the earlier reading had another one.
func (c *chainer) note() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := binary.BigEndian.Uint64(c.sum.Sum(nil))
	if was, known := sumAt(c.want, c.read); known && was != sum {
		return fmt.Errorf("read %s: within the %d bytes before byte %d it differs from what the run read before; give the "+
			"same input, or "+source.StartOver,
			c.name, c.want.Every, c.read)
	}
	if c.read%c.made.Every != 0 {
		return nil
	}
	c.made.Sums = append(c.made.Sums, sum)
	if len(c.made.Sums) >= maxSums {
		for i := range maxSums / 2 {
			c.made.Sums[i] = c.made.Sums[2*i+1]
		}
		c.made.Sums, c.made.Every = c.made.Sums[:maxSums/2], 2*c.made.Every
	}
	return nil
}

// chain returns the stream's sums: those of the earlier reading until this one has covered more bytes.
func (c *chainer) chain() source.Chain {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.made
	if covers(c.want) > covers(known) {
		known = c.want
	}
	return source.Chain{Every: known.Every, Sums: append([]uint64(nil), known.Sums...)}
}
