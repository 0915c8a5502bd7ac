package knownfiles

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"example.com/tsimport/reader/input"
)

// BlockBytes is the number of input bytes that a leaf of the tree hash covers.
const BlockBytes = 8 << 20

type blockSum = [sha256.Size]byte

// tree collects the hashes of an input's blocks while it is read, in any order and concurrently.
type tree struct {
	size  int64
	block int64 // size of a block in bytes

	mu    sync.Mutex
	done  map[int64]blockSum
	open  map[int64]*openBlock
	fresh []int64 // blocks in done that drain has not returned yet
}

// openBlock is a block that has been read from its beginning up to next.
type openBlock struct {
	mu   sync.Mutex
	sum  hash.Hash
	next int64
}

func newTree(size int64) *tree {
	return &tree{size: size, block: BlockBytes, done: map[int64]blockSum{}, open: map[int64]*openBlock{}}
}

func (t *tree) blocks() int64 { return (t.size + t.block - 1) / t.block }

func (t *tree) end(block int64) int64 { return min(t.size, (block+1)*t.block) }

// observe is called with every read. complete rereads blocks that are not read in order from their beginning.
func (t *tree) observe(off int64, p []byte) {
	for len(p) > 0 && off < t.size {
		block := off / t.block
		part := p[:min(int64(len(p)), t.end(block)-off)]
		t.observeBlock(block, off, part)
		off += int64(len(part))
		p = p[len(part):]
	}
}

func (t *tree) observeBlock(block, off int64, part []byte) {
	t.mu.Lock()
	if _, done := t.done[block]; done {
		t.mu.Unlock()
		return
	}
	b := t.open[block]
	if b == nil {
		if off != block*t.block {
			t.mu.Unlock()
			return
		}
		b = &openBlock{sum: sha256.New(), next: off}
		t.open[block] = b
	}
	t.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	end := off + int64(len(part))
	if off > b.next || end <= b.next {
		return
	}
	b.sum.Write(part[b.next-off:])
	b.next = end
	if end == t.end(block) {
		t.add(block, blockSum(b.sum.Sum(nil)), true)
	}
}

// add records the hash of a block. drain returns only fresh hashes.
func (t *tree) add(block int64, sum blockSum, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, block)
	if _, done := t.done[block]; !done && fresh {
		t.fresh = append(t.fresh, block)
	}
	t.done[block] = sum
}

// drain returns the blocks finished since the last call.
func (t *tree) drain() (blocks []int64, sums []blockSum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.fresh {
		blocks, sums = append(blocks, b), append(sums, t.done[b])
	}
	t.fresh = nil
	return blocks, sums
}

func (t *tree) missing() (blocks []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for b := range t.blocks() {
		if _, done := t.done[b]; !done {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// complete reads the missing blocks and returns the hash of the input.
func (t *tree) complete(ctx context.Context, item *input.Item) (string, error) {
	if missing := t.missing(); len(missing) > 0 {
		if err := t.read(ctx, item, missing); err != nil {
			return "", err
		}
		if left := t.missing(); len(left) > 0 {
			return "", fmt.Errorf("hash %s: %d of its blocks could not be read", item.Name, len(left))
		}
	}
	if err := item.Check(); err != nil {
		return "", err
	}
	return t.root(), nil
}

func (t *tree) read(ctx context.Context, item *input.Item, blocks []int64) error {
	if !item.Seekable() {
		return t.readAll(ctx, item)
	}
	at, err := item.OpenAt(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	buffer := make([]byte, min(t.block, t.size))
	for _, b := range blocks {
		part := buffer[:t.end(b)-b*t.block]
		if n, err := at.ReadAt(part, b*t.block); n < len(part) {
			return errors.Join(err, fmt.Errorf("hash %s: block %d is short", item.Name, b))
		}
		t.add(b, sha256.Sum256(part), false)
	}
	return nil
}

func (t *tree) readAll(ctx context.Context, item *input.Item) error {
	r, err := item.Open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	buffer := make([]byte, min(t.block, t.size))
	for b := range t.blocks() {
		part := buffer[:t.end(b)-b*t.block]
		if _, err := io.ReadFull(r, part); err != nil {
			return fmt.Errorf("hash %s: %w", item.Name, err)
		}
		t.add(b, sha256.Sum256(part), false)
	}
	return nil
}

// root returns the hash of the size and of all block hashes, which must be complete.
func (t *tree) root() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := sha256.New()
	_ = binary.Write(sum, binary.BigEndian, t.size) // never fails
	for b := range t.blocks() {
		leaf := t.done[b]
		sum.Write(leaf[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func hashOf(ctx context.Context, item *input.Item) (string, error) {
	return newTree(item.Size).complete(ctx, item)
}

// headBytes is the size of the beginning by which inputs of the same size are distinguished before they are read.
const headBytes = 1 << 20

func headOf(ctx context.Context, item *input.Item) (string, error) {
	r, err := item.Open(ctx)
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.CopyN(sum, r, min(headBytes, item.Size)); err != nil {
		return "", fmt.Errorf("hash the beginning of %s: %w", item.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// recordBytes is the size of a record of Blocks: the number of the input, the number of the block, and the hash.
const recordBytes = 4 + 8 + sha256.Size

func encodeBlocks(dst []byte, number int, blocks []int64, sums []blockSum) []byte {
	for i, b := range blocks {
		dst = binary.BigEndian.AppendUint32(dst, uint32(number))
		dst = binary.BigEndian.AppendUint64(dst, uint64(b))
		dst = append(dst, sums[i][:]...)
	}
	return dst
}

func decodeBlocks(records []byte, trees []*tree) error {
	for r := range slices.Chunk(records, recordBytes) {
		if len(r) < recordBytes {
			return errors.New("the saved block hashes are damaged")
		}
		number, block := binary.BigEndian.Uint32(r), int64(binary.BigEndian.Uint64(r[4:]))
		if int(number) >= len(trees) || block < 0 || block >= trees[number].blocks() {
			return errors.New("the saved block hashes belong to other inputs")
		}
		trees[number].add(block, blockSum(r[12:]), false)
	}
	return nil
}
