package spill

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/s2"
)

// packBytes is the compressor's block size. A small block suffices because neighbouring rows are similar.
const packBytes = 256 << 10

// keepBytes is the size of the largest buffer that is kept for the next frame.
const keepBytes = 2 << 20

// packer is a compressor and its output. S2 takes less CPU than the fastest zstd, but its frames are 50 % larger.
type packer struct {
	encoder *s2.Writer
	out     []byte
}

func newPacker() *packer {
	return &packer{encoder: s2.NewWriter(nil, s2.WriterConcurrency(1), s2.WriterBlockSize(packBytes))}
}

// rest frees a large buffer before the packer is returned to the pool. The packer may be nil.
func (p *packer) rest() *packer {
	if p != nil && cap(p.out) > keepBytes {
		p.out = nil
	}
	return p
}

// Write receives compressed bytes from the encoder.
func (p *packer) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

// pack compresses the data into out and returns its uncompressed size.
func (p *packer) pack(data [][]byte) (raw int, err error) {
	p.out = p.out[:0]
	p.encoder.Reset(p)
	for _, d := range data {
		raw += len(d)
		if _, err := p.encoder.Write(d); err != nil {
			return 0, err
		}
	}
	return raw, p.encoder.Close()
}

// unpacker is a decompressor and its input.
type unpacker struct {
	decoder *s2.Reader
	in      []byte
}

func newUnpacker() *unpacker {
	return &unpacker{decoder: s2.NewReader(nil, s2.ReaderMaxBlockSize(packBytes))}
}

// unpack appends the raw decompressed bytes of a frame to dst, which must have room for them.
func (u *unpacker) unpack(dst []byte, raw int) ([]byte, error) {
	u.decoder.Reset(bytes.NewReader(u.in))
	_, err := io.ReadFull(u.decoder, dst[len(dst):len(dst)+raw])
	return dst[:len(dst)+raw], err
}

// rest frees a large buffer before the unpacker is returned to the pool. The unpacker may be nil.
func (u *unpacker) rest() *unpacker {
	if u != nil && cap(u.in) > keepBytes {
		u.in = nil
	}
	return u
}
