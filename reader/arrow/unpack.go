package arrow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxBuffer is the size of the largest decompressed buffer, in bytes.
const maxBuffer = 1 << 34

var errPacked = errors.New("a buffer does not decompress to its stated size")

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(maxBuffer))
	if err != nil {
		panic(err) // cannot happen: the options are constants
	}
	return d
}}

var lz4Readers = sync.Pool{New: func() any { return lz4.NewReader(nil) }}

// unpackedSize returns a buffer's data and the decompressed size stated before it, -1 if the data is not compressed.
func unpackedSize(raw []byte) (rest []byte, size int64, err error) {
	if len(raw) < 8 {
		return nil, 0, fmt.Errorf("a compressed buffer of %d bytes is too short to state its size", len(raw))
	}
	size = int64(binary.LittleEndian.Uint64(raw))
	if size < -1 || size > maxBuffer {
		return nil, 0, fmt.Errorf("impossible uncompressed length of a buffer: %d bytes", size)
	}
	return raw[8:], size, nil
}

// unpack decompresses a buffer. It allocates memory as output arrives, because size is not trusted.
func unpack(codec int64, src []byte, size int64) ([]byte, error) {
	credible := min(size, 256*int64(len(src))+64<<10)
	if codec == codecZstd {
		return unpackZstd(src, size, credible)
	}
	r := lz4Readers.Get().(*lz4.Reader)
	defer lz4Readers.Put(r)
	r.Reset(bytes.NewReader(src))
	out := bytes.NewBuffer(make([]byte, 0, credible+bytes.MinRead))
	n, err := io.Copy(out, io.LimitReader(r, size+1))
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, errPacked
	}
	return out.Bytes(), nil
}

func unpackZstd(src []byte, size, credible int64) ([]byte, error) {
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	for {
		out, err := d.DecodeAll(src, make([]byte, 0, credible))
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded) && credible < size:
			credible = min(size, 4*credible)
		case err != nil:
			return nil, err
		case int64(len(out)) != size:
			return nil, errPacked
		default:
			return out, nil
		}
	}
}
