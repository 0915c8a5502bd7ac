package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The codecs, with the format's numbers.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecLZO    = 3
	codecBrotli = 4
	codecLZ4    = 5
	codecZstd   = 6
	codecLZ4Raw = 7
)

// maxPageBytes is the size of the largest decompressed page. Writers aim at 1 MiB; a row group has some hundred MiB.
const maxPageBytes = 1 << 30

var errPageSize = errors.New("page does not decompress to the size its header says")

func codecError(codec int32) error {
	switch codec {
	case codecNone, codecSnappy, codecGzip, codecBrotli, codecLZ4, codecZstd, codecLZ4Raw:
		return nil
	case codecLZO:
		return errors.New("compression codec LZO is not supported")
	}
	return fmt.Errorf("unknown compression codec %d", codec)
}

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(maxPageBytes))
	if err != nil {
		panic(err) // cannot happen: the options are constants
	}
	return d
}}

// decompress expands src to size bytes, into dst if it is large enough. It allocates memory as output arrives.
func decompress(codec int32, dst, src []byte, size int) ([]byte, error) {
	if size > maxPageBytes {
		return nil, fmt.Errorf("page of %d bytes exceeds the limit of %d", size, maxPageBytes)
	}
	var err error
	switch codec {
	case codecNone:
		dst = src
	case codecSnappy:
		if n, err := s2.DecodedLen(src); err != nil || n != size ||
			size > 64*len(src)+64 { // a Snappy copy expands 2 bytes to at most 64
			return nil, errPageSize
		}
		dst, err = s2.Decode(grow(dst, size)[:size], src)
	case codecLZ4Raw:
		dst, err = inflateLZ4(dst, src, size)
	case codecLZ4:
		dst, err = inflateOldLZ4(dst, src, size)
	case codecZstd:
		dst, err = inflateZstd(dst, src, size)
	case codecGzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(src)); err == nil {
			dst, err = inflate(dst, z, len(src), size)
		}
	case codecBrotli:
		dst, err = inflate(dst, brotli.NewReader(bytes.NewReader(src)), len(src), size)
	default:
		err = codecError(codec)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompress: %w", err)
	case len(dst) != size:
		return nil, errPageSize
	}
	return dst, nil
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return allocate(int64(n))[:0]
	}
	return b[:0]
}

// step is the size of the first allocation for a page: enough for usual data, but little if the header lies.
func step(in, size int) int { return min(size, max(1<<16, 16*in)) }

func inflateZstd(dst, src []byte, size int) ([]byte, error) {
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	for n := step(len(src), size); ; n = min(size, 16*n) {
		out, err := d.DecodeAll(src, grow(dst, n))
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) && n < size {
			continue
		}
		return out, err
	}
}

func inflate(dst []byte, r io.Reader, in, size int) ([]byte, error) {
	dst = grow(dst, step(in, size))
	for {
		room := min(cap(dst), size)
		n, err := io.ReadFull(r, dst[len(dst):room])
		dst = dst[:len(dst)+n]
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF && n > 0 && len(dst) < room:
			return dst, nil
		case err != nil:
			return nil, err
		case len(dst) == size:
			return dst, atEnd(r)
		}
		dst = append(allocate(int64(min(size, 4*cap(dst))))[:0], dst...)
	}
}

// atEnd reads to the end, where the checksum is verified.
func atEnd(r io.Reader) error {
	var one [1]byte
	for {
		n, err := r.Read(one[:])
		switch {
		case n > 0:
			return errPageSize
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// writer is the name of the program that wrote the file, according to the file. Some programs pad their pages.
type writer string

// group returns the number of values in a group of a packed run. The last group may end in padding that is not zeros.
func (w writer) group() uint64 {
	if strings.HasPrefix(string(w), "DuckDB") {
		return 256
	}
	return 8
}

// padding reports whether this writer is known to leave rest after plain values.
func (w writer) padding(rest []byte) bool {
	return strings.HasPrefix(string(w), "fastparquet") && bytes.Equal(rest, make([]byte, 8))
}

func inflateLZ4(dst, src []byte, size int) ([]byte, error) {
	if size > 256*len(src)+64 {
		return nil, errPageSize
	}
	dst = grow(dst, size+1)[:size+1] // the library fails for an empty buffer
	n, err := lz4.UncompressBlock(src, dst)
	return dst[:max(n, 0)], err
}

// inflateOldLZ4 expands a page of the deprecated LZ4: Hadoop blocks, a raw block or a frame, whichever fits exactly.
func inflateOldLZ4(dst, src []byte, size int) ([]byte, error) {
	if out, ok := inflateHadoop(dst, src, size); ok {
		return out, nil
	}
	if binary.LittleEndian.Uint32(append(src[:min(4, len(src)):min(4, len(src))], 0, 0, 0, 0)) == lz4FrameMagic {
		return inflate(dst, lz4.NewReader(bytes.NewReader(src)), len(src), size)
	}
	return inflateLZ4(dst, src, size)
}

const lz4FrameMagic = 0x184D2204

// inflateHadoop expands Hadoop blocks: a size, then parts with lengths. It returns false if src is something else.
func inflateHadoop(dst, src []byte, size int) (out []byte, ok bool) {
	if size > 256*len(src)+64 {
		return nil, false
	}
	out = grow(dst, size+1)
	number := func() int {
		if len(src) < 4 {
			return -1
		}
		n := int(int32(binary.BigEndian.Uint32(src)))
		src = src[4:]
		return n
	}
	for len(src) > 0 {
		left := number()
		if left < 0 || left > size-len(out) {
			return nil, false
		}
		for left > 0 {
			n := number()
			if n <= 0 || n > len(src) {
				return nil, false
			}
			at := len(out)
			got, err := lz4.UncompressBlock(src[:n], out[at:at+left+1])
			if err != nil || got <= 0 || got > left {
				return nil, false
			}
			out, src, left = out[:at+got], src[n:], left-got
		}
	}
	return out, len(out) == size
}
