package spill

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Settings of the compressor. Rows repeat within a few of their kind, so a small window saves memory and costs hardly
// any compression. Checksums of the raw bytes are off: the Frame has its own.
var packing = []zstd.EOption{
	zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256 << 10),
	zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false),
}

// keepBytes is the largest buffer of compressed bytes kept for the next frame.
const keepBytes = 2 << 20

// packer is a compressor and its output.
type packer struct {
	encoder *zstd.Encoder
	out     []byte
}

func newPacker() (*packer, error) {
	encoder, err := zstd.NewWriter(nil, packing...)
	if err != nil {
		return nil, fmt.Errorf("make spill compressor: %w", err)
	}
	return &packer{encoder: encoder}, nil
}

// rest frees a large buffer before the packer waits for its next frame. The packer may be nil.
func (p *packer) rest() *packer {
	if p != nil && cap(p.out) > keepBytes {
		p.out = nil
	}
	return p
}

// Write takes compressed bytes from the encoder.
func (p *packer) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

// pack compresses the data into out and returns their size.
func (p *packer) pack(data [][]byte) (raw int, err error) {
	p.out = p.out[:0]
	for _, d := range data {
		raw += len(d)
	}
	p.encoder.ResetContentSize(p, int64(raw))
	for _, d := range data {
		if _, err := p.encoder.Write(d); err != nil {
			return 0, err
		}
	}
	return raw, p.encoder.Close()
}

// unpacker is a decompressor and its input.
type unpacker struct {
	decoder *zstd.Decoder
	in      []byte
}

func newUnpacker() (*unpacker, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("make spill decompressor: %w", err)
	}
	return &unpacker{decoder: decoder}, nil
}

// rest frees a large buffer before the unpacker waits for its next frame. The unpacker may be nil.
func (u *unpacker) rest() *unpacker {
	if u != nil && cap(u.in) > keepBytes {
		u.in = nil
	}
	return u
}
