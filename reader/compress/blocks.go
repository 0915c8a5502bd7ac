package compress

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// ErrDependent is returned by BlockCutter.Next if it cannot cut the next block. Rest then reads on, up to any error.
var ErrDependent = errors.New("the next block cannot be inflated independently")

// Sizes in bytes: each piece but the last has at least pieceBytes compressed or pieceOut inflated; a zstd frame has at
// most maxFrame compressed and about maxOut inflated.
const (
	pieceBytes = 256 << 10
	pieceOut   = 4 << 20
	maxFrame   = 16 << 20
	maxOut     = 32 << 20
)

// Piece is a run of complete compressed blocks that can be inflated independently of others.
type Piece struct {
	Kind   Kind
	Name   string // name of the file
	Offset int64  // offset of Data in the file
	Data   []byte
	Bound  int // largest possible inflated size; exact for undamaged BGZF
}

// Independent reports whether a file seems to consist of blocks that can be inflated one by one: BGZF, or zstd whose
// first frame ends before head does. If a later block cannot, BlockCutter.Next returns ErrDependent.
func Independent(k Kind, head []byte) bool {
	of := blocksOf(k)
	return of != nil && of.begin(newSource(bytes.NewReader(head), 0))
}

// blocks is a compression format whose blocks are independent.
type blocks interface {
	// begin reports whether a file that begins with head consists of such blocks.
	begin(head *source) bool
	// cut appends the next block to data or, with an error, the bytes read. It refuses zstd frames far larger than most.
	cut(src *source, data []byte, most int) (_ []byte, bound int, err error)
	// inflate appends a piece's content to dst.
	inflate(f *Inflater, dst []byte, p Piece) ([]byte, error)
}

// blocksOf returns the blocks of a kind, or nil if they are not independent.
func blocksOf(k Kind) blocks {
	switch k {
	case Gzip:
		return bgzf{}
	case Zstd:
		return zstdFrames{}
	}
	return nil
}

// bgzf is gzip whose members state their compressed size.
type bgzf struct{}

func (bgzf) begin(head *source) bool {
	size, _ := bgzfSize(head)
	return size > 0
}

func (bgzf) cut(src *source, data []byte, _ int) (_ []byte, bound int, err error) {
	size, err := bgzfSize(src)
	if err != nil {
		return data, 0, err
	}
	start := len(data)
	data = slices.Grow(data, size)[:start+size]
	n, err := io.ReadFull(src, data[start:])
	data = data[:start+n]
	if err != nil {
		return data, 0, err
	}
	// A member's last four bytes are its inflated size. If that exceeds BGZF's limit, the file is not BGZF.
	bound = int(binary.LittleEndian.Uint32(data[len(data)-4:]))
	if bound > 64<<10 {
		return data, 0, ErrDependent
	}
	return data, bound, nil
}

// BlockCutter cuts a file of independent blocks into pieces without inflating it. It is not safe for concurrent use.
type BlockCutter struct {
	kind    Kind
	name    string
	src     *source
	out     int // inflated size at which a piece is complete
	frame   int // largest inflated size of a block
	started bool
	rest    io.Reader // the bytes of an unfinished block, then src
	offset  int64     // offset of rest
}

// NewBlockCutter returns a cutter for r, a file for which Independent has returned true.
func NewBlockCutter(k Kind, r io.Reader, name string) *BlockCutter {
	return &BlockCutter{kind: k, name: name, src: newSource(r, 0), out: pieceOut, frame: maxOut}
}

// Limit sets the largest inflated size of blocks to cut, and the window for Rest. 0 keeps the default.
func (c *BlockCutter) Limit(block, window int) {
	if block > 0 {
		c.frame = max(min(block, maxOut), 128<<10)
		c.out = min(c.out, c.frame)
	}
	c.src.limit(window)
}

// Next returns the next piece, or io.EOF at the end. After ErrDependent, use Rest for the remainder.
func (c *BlockCutter) Next() (Piece, error) {
	if c.rest != nil {
		return Piece{}, ErrDependent
	}
	p := Piece{Kind: c.kind, Name: c.name, Offset: c.src.offset()}
	for len(p.Data) < pieceBytes && p.Bound < c.out {
		if end, err := c.src.atEnd(); end || err != nil {
			if err != nil {
				c.leave(nil)
			}
			break
		}
		before := len(p.Data)
		data, bound, err := blocksOf(c.kind).cut(c.src, p.Data, c.frame)
		if err != nil {
			c.leave(slices.Clone(data[before:]))
			p.Data = data[:before]
			break
		}
		p.Data, p.Bound = data, p.Bound+bound
	}
	switch {
	case len(p.Data) > 0:
		c.started = true
		return p, nil
	case c.rest != nil || !c.started:
		c.leave(nil)
		return p, ErrDependent
	}
	return p, io.EOF
}

// leave keeps the bytes already read of an uncut block for Rest.
func (c *BlockCutter) leave(part []byte) {
	if c.rest == nil {
		c.offset = c.src.offset() - int64(len(part))
		c.rest = io.MultiReader(bytes.NewReader(part), c.src)
	}
}

// Rest decompresses everything after the last piece. Call it after ErrDependent.
func (c *BlockCutter) Rest() io.ReadCloser {
	c.leave(nil)
	src := newSource(c.rest, c.offset)
	src.window = c.src.window
	return &reader{kind: c.kind, name: c.name, src: src, continued: c.started}
}

// bgzfSize returns the compressed size of the gzip member at src, as stated in its BGZF field.
func bgzfSize(src *source) (int, error) {
	head, err := src.Peek(12)
	if err != nil {
		return 0, err
	}
	if string(head[:3]) != "\x1f\x8b\x08" || head[3]&4 == 0 {
		return 0, ErrDependent
	}
	extra := int(binary.LittleEndian.Uint16(head[10:]))
	head, err = src.Peek(12 + extra)
	if err != nil {
		return 0, err
	}
	for fields := head[12:]; len(fields) >= 4; {
		n := 4 + int(binary.LittleEndian.Uint16(fields[2:]))
		if n > len(fields) {
			break
		}
		if string(fields[:2]) == "BC" && n == 6 {
			size := int(binary.LittleEndian.Uint16(fields[4:])) + 1
			if size < 12+extra+10 {
				break
			}
			return size, nil
		}
		fields = fields[n:]
	}
	return 0, ErrDependent
}

type zstdFrames struct{}

func (zstdFrames) begin(head *source) bool {
	for {
		frame, _, skipped, err := zstdFrame(head, nil, maxOut)
		if err != nil {
			return false
		}
		if !skipped {
			end, _ := head.atEnd()
			return len(frame) > 0 && !end
		}
	}
}

func (zstdFrames) cut(src *source, data []byte, most int) (_ []byte, bound int, err error) {
	data, bound, _, err = zstdFrame(src, data, most)
	return data, bound, err
}

// zstdFrame appends the next frame, which may be skippable, to data. On an error, it appends the bytes read.
func zstdFrame(src *source, data []byte, out int) (_ []byte, bound int, skipped bool, err error) {
	f := frameWalk{src: src, data: data, start: len(data), out: out}
	bound, skipped, err = f.frame()
	return f.data, bound, skipped, err
}

type frameWalk struct {
	src   *source
	data  []byte
	start int // start of the frame in data
	out   int // largest inflated size of the frame
}

func (f *frameWalk) take(n int) ([]byte, error) {
	at := len(f.data)
	if at-f.start+n > min(maxFrame, f.out+128<<10) {
		return nil, ErrDependent
	}
	f.data = slices.Grow(f.data, n)[:at+n]
	got, err := io.ReadFull(f.src, f.data[at:])
	f.data = f.data[:at+got]
	return f.data[at:], err
}

func (f *frameWalk) frame() (bound int, skipped bool, err error) {
	peeked, err := f.src.Peek(zstd.HeaderMaxSize)
	if len(peeked) == 0 {
		return 0, false, noEOF(err)
	}
	var head zstd.Header
	if err := head.Decode(peeked); err != nil {
		return 0, false, err
	}
	if head.Skippable {
		_, err := f.take(min(8+int(head.SkippableSize), maxFrame+1))
		return 0, true, err
	}
	if head.WindowSize > MaxWindow || head.HasFCS && head.FrameContentSize > uint64(f.out) {
		return 0, false, ErrDependent
	}
	if _, err := f.take(head.HeaderSize); err != nil {
		return 0, false, err
	}
	for last := false; !last; {
		var n int
		if n, last, err = f.block(); err != nil {
			return 0, false, err
		}
		if bound += n; bound > f.out+128<<10 {
			return 0, false, ErrDependent
		}
	}
	if head.HasCheckSum {
		if _, err := f.take(4); err != nil {
			return 0, false, err
		}
	}
	if head.HasFCS {
		bound = min(bound, int(head.FrameContentSize))
	}
	return bound, false, nil
}

// block reads a block. bound is its largest possible inflated size.
func (f *frameWalk) block() (bound int, last bool, err error) {
	b, err := f.take(3)
	if err != nil {
		return 0, false, err
	}
	head := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	size := head >> 3
	bound = size
	switch head >> 1 & 3 {
	case 0: // uncompressed
	case 1: // one repeated byte
		size = 1
	default:
		bound = 128 << 10 // the largest inflated size of any block
	}
	_, err = f.take(size)
	return bound, head&1 != 0, err
}

// Inflater inflates pieces. It is not safe for concurrent use. Close frees its memory.
type Inflater struct {
	zstd *zstd.Decoder
	gzip gzipReader
	in   byteReader
}

// Inflate appends p's content to dst. On an error it appends nothing or, for BGZF, the blocks before the damaged one.
func (f *Inflater) Inflate(dst []byte, p Piece) (out []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, err = dst, failure(p.Kind, p.Name, p.Offset, fmt.Errorf("the decoder panicked: %v", cause))
		}
	}()
	return blocksOf(p.Kind).inflate(f, dst, p)
}

func (zstdFrames) inflate(f *Inflater, dst []byte, p Piece) (out []byte, err error) {
	if f.zstd == nil {
		if f.zstd, err = newZstd(nil, MaxWindow); err != nil {
			return dst, err
		}
	}
	if out, err = f.zstd.DecodeAll(p.Data, slices.Grow(dst, p.Bound)); err != nil {
		return dst, failure(p.Kind, p.Name, p.Offset, err)
	}
	return out, nil
}

// inflate inflates block by block, because only a block's checksum proves that its content is undamaged.
func (bgzf) inflate(f *Inflater, dst []byte, p Piece) ([]byte, error) {
	dst = slices.Grow(dst, p.Bound+1)
	limit := len(dst) + p.Bound
	for at := 0; at < len(p.Data); {
		size, err := bgzfSize(newSource(bytes.NewReader(p.Data[at:]), 0))
		if err != nil || size <= 0 || at+size > len(p.Data) {
			return dst, failure(p.Kind, p.Name, p.Offset+int64(at), cmp.Or(err, errors.New("not a block")))
		}
		f.in.Reset(p.Data[at : at+size])
		f.gzip.src, f.gzip.inMember, f.gzip.continued = &f.in, false, false
		good := len(dst)
		for {
			n, err := f.gzip.Read(dst[len(dst) : limit+1])
			dst = dst[:len(dst)+n]
			if err == io.EOF {
				break
			}
			if err == nil && len(dst) > limit {
				err = errors.New("the data is larger than its blocks state")
			}
			if err != nil {
				return dst[:good], failure(p.Kind, p.Name, p.Offset+int64(at+size-f.in.Len()), err)
			}
		}
		at += size
	}
	return dst, nil
}

func (f *Inflater) Close() {
	if f.zstd != nil {
		f.zstd.Close()
		f.zstd = nil
	}
}

type byteReader struct {
	bytes.Reader
	data []byte
}

func (r *byteReader) Reset(data []byte) {
	r.data = data
	r.Reader.Reset(data)
}

func (r *byteReader) Peek(n int) ([]byte, error) {
	rest := r.data[len(r.data)-r.Len():]
	if len(rest) < n {
		return rest, io.EOF
	}
	return rest[:n], nil
}
