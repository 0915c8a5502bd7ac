package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzBlock reads a block of an xz stream, including its check.
type xzBlock struct {
	src      *source
	data     io.Reader     // output of the filters
	lzma2    *lzma.Reader2 // input of the filters
	sum      hash.Hash     // nil if the stream has no check
	start    int64         // offset of the compressed data in the file
	header   uint64        // size of the block header
	size     uint64        // bytes returned so far
	unpadded uint64        // size as listed in the index; set at the end

	wantCompressed, wantSize uint64
	hasCompressed, hasSize   bool
}

const (
	filterDelta = 0x03
	filterARM64 = 0x0A
	filterLZMA2 = 0x21
)

var filterNames = map[uint64]string{
	3: "delta", 4: "x86", 5: "PowerPC", 6: "IA-64", 7: "ARM", 8: "ARM-Thumb", 9: "SPARC", 10: "ARM64", 11: "RISC-V",
}

type xzFilter struct {
	id    uint64
	props []byte
}

// newXzBlock reads a block header, whose first byte is size.
func newXzBlock(src *source, size, check byte) (*xzBlock, error) {
	head := make([]byte, (int(size)+1)*4)
	head[0] = size
	if _, err := io.ReadFull(src, head[1:]); err != nil {
		return nil, noEOF(err)
	}
	body := head[:len(head)-4]
	if binary.LittleEndian.Uint32(head[len(body):]) != crc32.ChecksumIEEE(body) {
		return nil, errors.New("the checksum of the block header is wrong")
	}
	b := &xzBlock{src: src, header: uint64(len(head)), start: src.offset()}
	filters, err := b.parse(body)
	if err != nil {
		return nil, err
	}
	if b.sum, err = newXzCheck(check); err != nil {
		return nil, err
	}
	return b, b.chain(filters)
}

// parse parses the fields of a block header. A field that extends beyond it means damage, not a truncated file.
func (b *xzBlock) parse(body []byte) (filters []xzFilter, err error) {
	flags := body[1]
	if flags&0x3C != 0 {
		return nil, errors.New("unknown block flags")
	}
	in := bytes.NewReader(body[2:])
	number := func() (v uint64) {
		if err == nil {
			v, err = readVLI(in)
		}
		return v
	}
	if b.hasCompressed = flags&0x40 != 0; b.hasCompressed {
		if b.wantCompressed = number(); b.wantCompressed == 0 && err == nil {
			return nil, errors.New("bad size in a block header")
		}
	}
	if b.hasSize = flags&0x80 != 0; b.hasSize {
		b.wantSize = number()
	}
	for range int(flags&3) + 1 {
		f := xzFilter{id: number()}
		n := number()
		if err != nil || n > uint64(in.Len()) {
			return nil, errors.New("block header does not fit")
		}
		f.props = make([]byte, n)
		io.ReadFull(in, f.props)
		filters = append(filters, f)
	}
	for in.Len() > 0 {
		if c, _ := in.ReadByte(); c != 0 {
			return nil, errors.New("unknown block header field")
		}
	}
	return filters, nil
}

// chain builds the chain of filters. LZMA2 is last in the header, but decodes first.
func (b *xzBlock) chain(filters []xzFilter) error {
	last := filters[len(filters)-1]
	if last.id != filterLZMA2 || len(last.props) != 1 || last.props[0] > 40 {
		return fmt.Errorf("filter %#x %s, or its setting, is not supported as the last filter", last.id, filterNames[last.id])
	}
	bits := last.props[0]
	dict := min(uint64(2|bits&1)<<(bits/2+11), 1<<32-1)
	if b.hasSize {
		dict = min(dict, max(b.wantSize, lzma.MinDictCap))
	}
	if dict > uint64(b.src.window) {
		return &windowError{b.src.window}
	}
	var err error
	b.lzma2, err = lzma.Reader2Config{DictCap: int(dict)}.NewReader2(b.src)
	if err != nil {
		return noEOF(err)
	}
	b.data = b.lzma2
	for i := len(filters) - 2; i >= 0; i-- {
		f := filters[i]
		switch {
		case f.id == filterDelta && len(f.props) == 1:
			b.data = &delta{r: b.data, distance: int(f.props[0]) + 1}
		case f.id == filterARM64 && len(f.props) == 0:
			b.data = &arm64{r: b.data}
		case f.id == filterARM64 && len(f.props) == 4 && f.props[0]&3 == 0:
			b.data = &arm64{r: b.data, pos: binary.LittleEndian.Uint32(f.props)}
		default:
			return fmt.Errorf("filter %#x %s, or its setting, is not supported here", f.id, filterNames[f.id])
		}
	}
	return nil
}

func (b *xzBlock) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	b.size += uint64(n)
	if b.sum != nil {
		b.sum.Write(p[:n])
	}
	if b.hasSize && b.size > b.wantSize {
		return n, errors.New("block is larger than its header says")
	}
	if err == io.EOF {
		if err := b.finish(); err != nil {
			return n, err
		}
	}
	return n, err
}

func (b *xzBlock) finish() error {
	if !b.lzma2.EOS() {
		return io.ErrUnexpectedEOF
	}
	compressed := uint64(b.src.offset() - b.start)
	if b.hasCompressed && compressed != b.wantCompressed || b.hasSize && b.size != b.wantSize {
		return errors.New("block size differs from its header")
	}
	for pad := compressed; pad%4 != 0; pad++ {
		if c, err := b.src.ReadByte(); err != nil {
			return noEOF(err)
		} else if c != 0 {
			return errors.New("padding of a block is not zero")
		}
	}
	b.unpadded = b.header + compressed
	if b.sum == nil {
		return nil
	}
	want := make([]byte, b.sum.Size())
	if _, err := io.ReadFull(b.src, want); err != nil {
		return noEOF(err)
	}
	if !bytes.Equal(want, b.sum.Sum(nil)) {
		return errors.New("the checksum of the data is wrong")
	}
	b.unpadded += uint64(len(want))
	return nil
}
