package compress

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"
	"github.com/pierrec/lz4/v4"
)

// Kind is a format of compressed data.
type Kind uint8

// The kinds. Zip and all that follow are recognised only to be refused by name.
const (
	None      Kind = iota
	Gzip           // RFC 1952, several members; includes BGZF
	Zstd           // RFC 8878, several frames, skippable frames
	Bzip2          // several streams
	Xz             // several streams, padding
	Lz4            // frame format, several frames, skippable and legacy frames
	Snappy         // framing format
	S2             // snappy's framing format with S2 blocks
	SnappyRaw      // one snappy block without framing

	Zip
	SevenZip
	Rar
	Tar
	Z // compress(1)
	Lzop
	ZstdLegacy // zstd before 0.8
	Lzma       // .lzma, "LZMA alone"
	Lzip
)

// kind describes a Kind. For kinds with independent blocks, see blocksOf.
type kind struct {
	name   string
	magics []string                         // byte strings with which a file may begin
	is     func(head []byte) bool           // another test of a file's beginning; may be nil
	open   func(*reader) (io.Reader, error) // creates a decoder; nil if unsupported
	way    string                           // advice on reading FILE, of an unsupported kind
}

var kinds = [...]kind{
	None: {name: "none"},
	Gzip: {name: "gzip", magics: []string{"\x1f\x8b"},
		open: func(r *reader) (io.Reader, error) { return &gzipReader{src: r.src, continued: r.continued}, nil }},
	Zstd: {name: "zstd", is: func(head []byte) bool { return detectFrame(head) == Zstd },
		open: func(r *reader) (io.Reader, error) { return newZstd(r.src, r.src.window) }},
	Bzip2: {name: "bzip2", is: isBzip2,
		open: func(r *reader) (io.Reader, error) { return bzip2.NewReader(r.src), nil }},
	Xz: {name: "xz", magics: []string{"\xfd7zXZ\x00"},
		open: func(r *reader) (io.Reader, error) { return &xzReader{src: r.src}, nil }},
	Lz4: {name: "lz4", is: func(head []byte) bool { return detectFrame(head) == Lz4 },
		open: func(r *reader) (io.Reader, error) { return lz4.NewReader(r.src), nil }},
	Snappy: {name: "snappy", magics: []string{"\xff\x06\x00\x00sNaPpY"},
		open: func(r *reader) (io.Reader, error) { return s2.NewReader(r.src, s2.ReaderMaxBlockSize(64<<10)), nil }},
	S2: {name: "s2", magics: []string{"\xff\x06\x00\x00S2sTwO"},
		open: func(r *reader) (io.Reader, error) { return s2.NewReader(r.src), nil }},
	SnappyRaw: {name: "snappy without framing",
		open: func(r *reader) (io.Reader, error) {
			return &snappyRawReader{src: r.src, window: min(r.src.window, snappyWindow)}, nil
		}},

	Zip: {name: "zip", magics: []string{"PK\x03\x04", "PK\x05\x06", "PK\x07\x08"},
		way: "unpack it: unzip -p FILE | tsimport load -"},
	SevenZip: {name: "7z", magics: []string{"7z\xbc\xaf\x27\x1c"}, way: "unpack it: 7z x -so FILE | tsimport load -"},
	Rar:      {name: "rar", magics: []string{"Rar!\x1a\x07"}, way: "unpack it: unrar p -inul FILE | tsimport load -"},
	Tar: {name: "tar", is: func(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" },
		way: "unpack it into a folder and load that: mkdir out && tar -xf FILE -C out && tsimport load out"},
	Z:    {name: "compress (.Z)", magics: []string{"\x1f\x9d"}, way: "decompress it: gzip -dc FILE | tsimport load -"},
	Lzop: {name: "lzop", magics: []string{"\x89LZO\x00\r\n\x1a\n"}, way: "decompress it: lzop -dc FILE | tsimport load -"},
	ZstdLegacy: {name: "zstd before 0.8", is: func(head []byte) bool { return detectFrame(head) == ZstdLegacy },
		way: "decompress it with the program that wrote it"},
	Lzma: {name: "lzma", is: isLzma, way: "decompress it: xz --format=lzma -dc FILE | tsimport load -"},
	Lzip: {name: "lzip",
		is:  func(head []byte) bool { return len(head) >= 6 && string(head[:4]) == "LZIP" && head[4] <= 1 },
		way: "decompress it: lzip -dc FILE | tsimport load -"},
}

func (k Kind) String() string { return kinds[k].name }

// Supported reports whether NewLimitedReader can read files of the kind.
func (k Kind) Supported() bool { return k == None || kinds[k].open != nil }

// Way returns advice on reading FILE of an unsupported kind, and "" for other kinds.
func (k Kind) Way() string { return kinds[k].way }

// HeadBytes is the number of bytes at the start of a file that suffice for Detect.
const HeadBytes = 4096

const (
	lz4Magic       = 0x184D2204
	lz4LegacyMagic = 0x184C2102
	zstdMagic      = 0xFD2FB528
	skippableMagic = 0x184D2A50 // the low 4 bits vary
)

// Detect returns the kind of the file that begins with head, or None. whole means that head is the whole file.
func Detect(head []byte, whole bool) Kind {
	for k := range kinds {
		of := &kinds[k]
		if of.is != nil && of.is(head) || slices.ContainsFunc(of.magics,
			func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }) {
			return Kind(k)
		}
	}
	if isRawSnappy(head, whole) {
		return SnappyRaw
	}
	return None
}

// detectFrame distinguishes lz4 and zstd, which have the same skippable frames, by the first frame of another type.
func detectFrame(head []byte) Kind {
	skipped := false
	for len(head) >= 4 {
		magic := binary.LittleEndian.Uint32(head)
		switch {
		case magic == zstdMagic:
			return Zstd
		case magic == lz4Magic, magic == lz4LegacyMagic:
			return Lz4
		case magic&0xFFFFFF00 == zstdMagic&0xFFFFFF00 && magic&0xFF >= 0x1E && magic&0xFF <= 0x27:
			return ZstdLegacy
		case magic&^0xF != skippableMagic:
			return None
		}
		skipped = true
		if len(head) < 8 {
			break
		}
		size := uint64(binary.LittleEndian.Uint32(head[4:])) + 8
		if size > uint64(len(head)) {
			break
		}
		head = head[size:]
	}
	if skipped {
		return Zstd // only zstd is known to use a skippable frame larger than head
	}
	return None
}

// isBzip2 checks for a block's or the end's magic after "BZh9", because a text may begin with "BZh9".
func isBzip2(head []byte) bool {
	if len(head) < 4 || string(head[:3]) != "BZh" || head[3] < '1' || head[3] > '9' {
		return false
	}
	next := head[4:min(len(head), 10)]
	return bytes.HasPrefix([]byte("\x31\x41\x59\x26\x53\x59"), next) ||
		bytes.HasPrefix([]byte("\x17\x72\x45\x38\x50\x90"), next)
}

// isLzma recognises the header that all encoders write, because the format has no magic.
func isLzma(head []byte) bool {
	if len(head) < 14 || head[0] != 0x5D || head[13] != 0 {
		return false
	}
	size := binary.LittleEndian.Uint64(head[5:])
	return lzmaDictSize(binary.LittleEndian.Uint32(head[1:])) && (size == 1<<64-1 || size < 1<<38)
}

// lzmaDictSize reports whether n is a dictionary size that encoders use: 2^k or 2^k + 2^(k-1).
func lzmaDictSize(n uint32) bool {
	if n == 1<<32-1 {
		return true
	}
	if n < 4096 {
		return false
	}
	low := n & -n
	return n == low || n == low*3
}

// minRawElements is the number of valid elements that suffice to recognise a raw snappy block.
const minRawElements = 16

// isRawSnappy checks a block's elements, because it has no magic: the first is a literal, copies refer to earlier
// output, and a whole file has the stated size. With too few elements, it must hold JSON. Text is never accepted.
func isRawSnappy(head []byte, whole bool) bool {
	total, n := binary.Uvarint(head)
	if n < 1 || total == 0 || total >= 1<<32 || n > 1 && head[n-1] == 0 || isText(head) {
		return false
	}
	rest := head[n:]
	var produced uint64
	elements, json := 0, false
	for len(rest) > 0 {
		var length, offset, size uint64
		tag := rest[0]
		need := [4]int{1, 2, 3, 5}[tag&3]
		if tag&3 == 0 && tag>>2 >= 60 {
			need += int(tag>>2) - 59
		}
		if len(rest) < need {
			return !whole && elements >= minRawElements
		}
		switch tag & 3 {
		case 0:
			length = uint64(tag >> 2)
			if length >= 60 {
				var b [8]byte
				copy(b[:], rest[1:need])
				length = binary.LittleEndian.Uint64(b[:])
			}
			length++
			size = uint64(need) + length
		case 1:
			length, offset, size = uint64(tag>>2&7)+4, uint64(tag>>5)<<8|uint64(rest[1]), 2
		case 2:
			length, offset, size = uint64(tag>>2)+1, uint64(binary.LittleEndian.Uint16(rest[1:])), 3
		case 3:
			length, offset, size = uint64(tag>>2)+1, uint64(binary.LittleEndian.Uint32(rest[1:])), 5
		}
		if tag&3 != 0 && (offset == 0 || offset > produced) || produced+length > total {
			return false
		}
		produced += length
		if elements++; elements == 1 && need < len(rest) {
			json = rest[need] == '{' || rest[need] == '['
		}
		if size > uint64(len(rest)) {
			return !whole && elements >= minRawElements
		}
		rest = rest[size:]
	}
	if whole {
		return produced == total && (json || elements >= minRawElements)
	}
	return elements >= minRawElements
}

// isText reports whether the bytes are UTF-8 without control characters other than white space.
func isText(head []byte) bool {
	head = head[:min(len(head), HeadBytes)]
	for _, b := range head {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			return false
		}
	}
	for range utf8.UTFMax { // the last character may be incomplete
		if utf8.Valid(head) {
			return true
		}
		head = head[:max(len(head)-1, 0)]
	}
	return false
}
