package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of messages, with the format's numbers.
const (
	messageSchema     = 1
	messageDictionary = 2
	messageBatch      = 3
)

// Codecs of bodies, with the format's numbers.
const (
	codecNone = -1
	codecLZ4  = 0
	codecZstd = 1
)

type message struct {
	kind   int64
	head   flatTable
	body   int64 // size of the body in bytes
	schema *schema
}

// batch is the metadata of a record batch or a dictionary batch.
type batch struct {
	rows    int64
	nodes   []int64 // length and null count of each field, in schema order, parents before children
	buffers []int64 // offset and length of each buffer in the body
	views   []int64 // number of data buffers of each view field
	codec   int64
	version int64
}

func readMessage(b []byte) (m message, err error) {
	defer damaged(&err)
	t := newFlat(b).root()
	m = message{kind: int64(uint8(t.number(1, 1, 0))), body: t.number(3, 8, 0)}
	version := t.number(0, 2, 0)
	m.head, _ = t.child(2)
	for _, pair := range t.tables(4) {
		if pair.text(0) == "ARROW:experimental_compression" {
			return m, errors.New("the compression of Arrow 0.17 is not supported; write the file with a later version")
		}
	}
	if m.body < 0 {
		return m, errMetadata
	}
	switch m.kind {
	case messageSchema:
		m.schema = readSchema(m.head, version)
		return m, nil
	case messageDictionary, messageBatch:
		return m, nil
	}
	return m, fmt.Errorf("message kind %d is not a schema, dictionary or record batch", m.kind)
}

// readBatch reads the metadata of a batch whose body has body bytes.
func readBatch(t flatTable, body int64, version int64) (b *batch, err error) {
	defer damaged(&err)
	b = &batch{rows: t.number(0, 8, 0), codec: codecNone, version: version}
	b.nodes, b.buffers, b.views = t.words(1, 2), t.words(2, 2), t.words(4, 1)
	if packed, ok := t.child(3); ok {
		if b.codec = packed.number(0, 1, 0); b.codec != codecLZ4 && b.codec != codecZstd {
			return nil, fmt.Errorf("unknown compression codec %d", b.codec)
		}
		if method := packed.number(1, 1, 0); method != 0 {
			return nil, fmt.Errorf("unknown compression method %d", method)
		}
	}
	if b.rows < 0 || b.rows > maxRows {
		return nil, fmt.Errorf("impossible number of rows in a batch: %d", b.rows)
	}
	for i := 0; i < len(b.buffers); i += 2 {
		if from, n := b.buffers[i], b.buffers[i+1]; from < 0 || n < 0 || from > body || n > body-from {
			return nil, fmt.Errorf("%d bytes at %d are not in the body of %d bytes", n, from, body)
		}
	}
	for _, n := range b.views {
		if n < 0 || n > int64(len(b.buffers)) {
			return nil, errMetadata
		}
	}
	return b, nil
}

// maxRows is more than any batch has, yet small enough that the rows of all batches can be added up without overflow.
const maxRows = 1 << 48

const continuation = 0xffffffff

// nextMetadata reads a message's metadata and returns the number of bytes read. At the end mark, metadata is nil.
func nextMetadata(r io.Reader, limit int64) (metadata []byte, taken int64, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:4]); err != nil {
		return nil, 0, err
	}
	taken = 4
	n := binary.LittleEndian.Uint32(head[:])
	if n == continuation {
		if _, err := io.ReadFull(r, head[4:]); err != nil {
			return nil, 0, noEOF(err)
		}
		taken, n = 8, binary.LittleEndian.Uint32(head[4:])
	}
	if n == 0 {
		return nil, taken, nil
	}
	if int64(n) > limit {
		return nil, 0, tooLarge(int64(n), limit)
	}
	metadata, err = readBytes(r, int64(n))
	return metadata, taken + int64(n), err
}

func tooLarge(n, limit int64) error {
	return fmt.Errorf("the metadata of a message takes %d bytes, but the limit is %d; give more memory with --memory", n,
		limit)
}

// readBytes reads n bytes. It allocates memory as data arrives, because n is not trusted.
func readBytes(r io.Reader, n int64) ([]byte, error) {
	const step = 1 << 20
	b := make([]byte, 0, min(n, step))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, 2*int64(cap(b)))), b...)
		}
		k, err := io.ReadFull(r, b[len(b):cap(b)])
		if b = b[:len(b)+k]; err != nil {
			return nil, noEOF(err)
		}
	}
	return b, nil
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
