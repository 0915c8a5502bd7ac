package keyexpr

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"example.com/tsimport/internal/table"
)

type digest struct {
	size   int // bytes of the hash
	sum    func(sum *[32]byte, text []byte)
	python string // formula for the whole hash in hexadecimal digits
}

// digests maps names to hash functions. A result that is a number is written in big-endian order.
var digests = map[string]digest{
	"md5": {md5.Size, func(sum *[32]byte, text []byte) { s := md5.Sum(text); copy(sum[:], s[:]) },
		"hashlib.md5(%s).hexdigest()"},
	"sha1": {sha1.Size, func(sum *[32]byte, text []byte) { s := sha1.Sum(text); copy(sum[:], s[:]) },
		"hashlib.sha1(%s).hexdigest()"},
	"sha256": {sha256.Size, func(sum *[32]byte, text []byte) { *sum = sha256.Sum256(text) },
		"hashlib.sha256(%s).hexdigest()"},
	"crc32": {4, func(sum *[32]byte, text []byte) { binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE(text)) },
		`"%%08x" %% zlib.crc32(%s)`},
	"murmur3": {4, func(sum *[32]byte, text []byte) { binary.BigEndian.PutUint32(sum[:], murmur3(text)) },
		`"%%08x" %% mmh3.hash(%s, signed=False)`},
	"xxhash": {8, func(sum *[32]byte, text []byte) { binary.BigEndian.PutUint64(sum[:], xxhash.Sum64(text)) },
		"xxhash.xxh64(%s).hexdigest()"},
}

// collisionFree is a number of hexadecimal digits for which SHA-256 has no known collisions, unlike MD5 and SHA-1.
const collisionFree = 32

const hexDigits = "0123456789abcdef"

// digest compiles the first digits of the hash of a value's text, or of a binary value. It does not preserve order.
func (c *compiler) digest(k *call) *node {
	x := c.operand(k, 0)
	d := digests[k.name]
	digits := 2 * d.size
	if len(k.args) == 2 {
		digits = int(k.number(1, int64(digits)))
	}
	n := &node{typ: table.String, src: k.src, width: digits,
		recipe: fmt.Sprintf("the first %d hexadecimal digits of the %s of %s", digits, k.name, x.recipe),
		python: fmt.Sprintf("("+d.python+")[:%d]", bytesPython(x), digits)}
	values := 0
	if digits <= 6 {
		values = 1 << (4 * digits)
	}
	n.order = unordered(k.src, values)
	if k.name == "sha256" && digits >= collisionFree {
		n.tells = x.textTells()
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		text, ok := x.bytes(e, row)
		if !ok {
			return false
		}
		d.sum(&e.sum, text)
		e.buf = e.buf[:start]
		for i := range digits {
			e.buf = append(e.buf, hexDigits[e.sum[i/2]>>(4-4*(i%2))&15])
		}
		return true
	}
	return n
}

// MaxBuckets is the largest n for bucket and salt.
const MaxBuckets = 1_000_000

// hashNumber returns the dividend of bucket and salt: the first eight hexadecimal digits of the MD5 as a number. MD5 is
// not the fastest hash, but it is available in every language in which a reader may be written.
func hashNumber(text []byte) int64 {
	sum := md5.Sum(text)
	return int64(binary.BigEndian.Uint32(sum[:]))
}

// bucket compiles the non-negative remainder of an integer, or of the hash of another value's text, with leading zeros.
func (c *compiler) bucket(k *call) *node {
	x := c.operand(k, 0)
	count := k.number(1, MaxBuckets)
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, int(count)), width: bucketWidth(count)}
	if x.typ == table.Integer {
		n.recipe = fmt.Sprintf("%s modulo %d, as %d digits", x.recipe, count, n.width)
		n.python = fmt.Sprintf("str(%s %% %d).zfill(%d)", x.python, count, n.width)
	} else {
		n.recipe = fmt.Sprintf("the first 8 hexadecimal digits of the md5 of %s as a number, modulo %d, as %d digits",
			x.recipe, count, n.width)
		n.python = fmt.Sprintf("str(int(hashlib.md5(%s).hexdigest()[:8], 16) %% %d).zfill(%d)", bytesPython(x),
			count, n.width)
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		v := x.value(e, row)
		at := len(e.buf)
		var rest int64
		switch v.Type {
		case table.Null:
			return false
		case table.Integer:
			rest = (v.Int%count + count) % count
		default:
			e.buf = appendText(e.buf, v)
			rest = hashNumber(e.buf[at:]) % count
		}
		e.buf = e.buf[:start]
		return e.padInteger(n, rest, n.width)
	}
	return n
}

func bucketWidth(count int64) int { return len(strconv.FormatInt(count-1, 10)) }

// salt compiles a number in [0, n) that depends only on the named values. For each value it hashes a byte 1, the length
// of the value's text as four big-endian bytes, and the text; for null it hashes a byte 0. So ("a", "bc") and ("ab",
// "c") differ, and the type inferred from a sample does not matter.
func (c *compiler) salt(k *call) *node {
	count := k.number(0, MaxBuckets)
	var parts []*node
	list, python := "", ""
	add := func(x *node) {
		parts = append(parts, x)
		list += ", " + x.recipe
		python += ", None if " + x.python + " is None else " + bytesPython(x)
	}
	for i := range k.args[1:] {
		add(c.operand(k, i+1))
	}
	if len(parts) == 0 {
		for _, name := range c.program.env.SaltColumns {
			add(c.column(name))
		}
	}
	if len(parts) == 0 && !c.program.env.probe {
		panic(k.refusef("no columns; name those that the salt is computed from: salt(%d, column, …)", count))
	}
	width := bucketWidth(count)
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, int(count)), width: width,
		recipe: fmt.Sprintf("a salt from 0 to %d with %d digits, computed from %s (see docs/keys.md)", count-1, width,
			strings.TrimPrefix(list, ", ")),
		python: fmt.Sprintf(`str(int(hashlib.md5(b"".join(b"\0" if v is None else b"\1" + struct.pack(">I", len(v)) + v for v in [%s])).hexdigest()[:8], 16) %% %d).zfill(%d)`, strings.TrimPrefix(python, ", "), count, width)}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		for _, x := range parts {
			e.saltPart(x, row)
		}
		rest := hashNumber(e.buf[start:]) % count
		e.buf = e.buf[:start]
		return e.why == nil && e.padInteger(n, rest, width)
	}
	return n
}

func (e *Evaluator) saltPart(x *node, row []table.Value) {
	start := len(e.buf)
	v := x.value(e, row)
	if v.Type == table.Null {
		e.buf = append(e.buf[:start], 0)
		return
	}
	at := len(e.buf)
	e.buf = append(e.buf, 1, 0, 0, 0, 0)
	e.buf = appendText(e.buf, v)
	binary.BigEndian.PutUint32(e.buf[at+1:], uint32(len(e.buf)-at-5))
	// Computing the value may have left bytes in front of it; remove them.
	e.buf = e.buf[:start+copy(e.buf[start:], e.buf[at:])]
}

// murmur3 is the 32-bit MurmurHash3 for x86 with seed 0.
func murmur3(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	h, size := uint32(0), uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(data)), 13)*5 + 0xe6546b64
	}
	var k uint32
	for i, b := range data {
		k |= uint32(b) << (8 * i)
	}
	h ^= mix(k) // mix(0) is 0 if no bytes are left
	h ^= size
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
