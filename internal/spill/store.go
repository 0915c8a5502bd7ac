package spill

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
)

// ErrFull means that a frame would exceed MaxBytes, or that the disk or the user's quota is full.
var ErrFull = errors.New("no space left for spilled rows")

var errClosed = errors.New("the spill store is closed")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type Options struct {
	Dir      string // folder in which the store creates its own; "" means os.TempDir()
	MaxBytes int64  // maximum size on disk; 0 means no limit
}

// Store keeps frames in one file. It is safe for concurrent use. At most poolSize calls compress at the same time.
type Store struct {
	dir       string
	packers   chan *packer   // nil stands for a packer that has not been created yet
	unpackers chan *unpacker // like packers
	create    func(name string) (file, error)

	mu     sync.Mutex
	folder *folder // nil before the first frame
	file   file
	space  space
	usage  Usage
	closed bool
}

// file is the part of *os.File that a store needs. Tests replace it with one that fails.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// Frame identifies bytes in a Store. The zero Frame identifies no bytes. Frames are comparable.
type Frame struct{ kept *kept }

type kept struct {
	raw, disk int    // bytes before and after compression, without the unused end of the last block
	sum       uint32 // CRC-32C of the compressed bytes; ReadAt does not use it
	extents   []extent
	freed     bool // guarded by Store.mu
}

// Usage holds the current and past sizes of a store.
type Usage struct {
	Frames        int   // number of frames that have not been freed
	RawBytes      int64 // uncompressed size of these frames
	DiskBytes     int64 // current length of the file
	PeakDiskBytes int64 // largest DiskBytes so far
	WrittenBytes  int64 // all compressed bytes written so far
}

// poolSize is the number of compressors, and of decompressors. Each holds about 0.6 MiB and a buffer. Two compress
// faster than most disks write.
const poolSize = 2

// Open makes a store and removes the folders of killed runs from Dir. The first frame creates the store's own folder.
func Open(o Options) (*Store, error) {
	o.Dir = cmp.Or(o.Dir, os.TempDir())
	if err := sweep(o.Dir); err != nil {
		return nil, fmt.Errorf("open spill directory: %w; name another one with TMPDIR", err)
	}
	s := &Store{
		dir:       o.Dir,
		packers:   make(chan *packer, poolSize),
		unpackers: make(chan *unpacker, poolSize),
		create:    createFile,
		space:     space{max: o.MaxBytes},
	}
	for range poolSize {
		s.packers <- nil
		s.unpackers <- nil
	}
	return s, nil
}

// Write compresses data into one frame. If there is no space, the error wraps ErrFull. An error leaves the store as is.
func (s *Store) Write(data ...[]byte) (Frame, error) {
	p := <-s.packers
	defer func() { s.packers <- p.rest() }()
	if p == nil {
		p = newPacker()
	}
	raw, err := p.pack(data)
	if err != nil {
		return Frame{}, fmt.Errorf("compress spill frame: %w", err)
	}
	return s.keep(&kept{raw: raw, disk: len(p.out), sum: crc32.Checksum(p.out, castagnoli)}, p.out)
}

// Keep is like Write, but does not compress, so that ReadAt can read parts. ReadAt does not detect damage.
func (s *Store) Keep(data []byte) (Frame, error) {
	return s.keep(&kept{raw: len(data), disk: len(data)}, data)
}

func (s *Store) keep(k *kept, data []byte) (Frame, error) {
	f, err := s.reserve(k)
	if err != nil {
		return Frame{}, err
	}
	// No lock is needed while writing, because no other call uses these extents.
	rest := data
	for _, e := range k.extents {
		n := min(int(e.bytes), len(rest))
		if _, err := f.WriteAt(rest[:n], e.at); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.giveBack(k)
			return Frame{}, writeError(err)
		}
		rest = rest[n:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.Frames++
	s.usage.RawBytes += int64(k.raw)
	s.usage.WrittenBytes += int64(k.disk)
	return Frame{k}, nil
}

// reserve allocates space for a frame in the file, and creates the folder if necessary.
func (s *Store) reserve(k *kept) (file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.folder == nil {
		made, err := makeFolder(s.dir)
		if err != nil {
			return nil, writeError(err)
		}
		f, err := s.create(made.framesPath())
		if err != nil {
			return nil, writeError(cmp.Or(err, made.remove()))
		}
		s.folder, s.file = made, f
	}
	extents, ok := s.space.take(k.disk)
	if !ok {
		return nil, fmt.Errorf("write spill frame: %w: %d more bytes exceed the limit of %d", ErrFull, k.disk, s.space.max)
	}
	k.extents = extents
	s.measure()
	return s.file, nil
}

func (s *Store) measure() {
	s.usage.DiskBytes = s.space.end
	s.usage.PeakDiskBytes = max(s.usage.PeakDiskBytes, s.space.end)
}

// giveBack frees a frame's extents, and shortens the file if they were at its end. The caller holds mu.
func (s *Store) giveBack(k *kept) {
	if s.closed {
		return
	}
	before := s.space.end
	s.space.give(k.extents)
	if s.space.end < before {
		// Truncate under the lock, so that it cannot cut off another call's new bytes. A failure only wastes space.
		_ = s.file.Truncate(s.space.end)
	}
	s.measure()
}

func writeError(err error) error {
	if IsFull(err) {
		return fmt.Errorf("write spill frame: %w: %w; free some, or name another disk with TMPDIR", ErrFull, err)
	}
	return fmt.Errorf("write spill frame: %w", err)
}

// Read appends a frame's bytes to dst. If the frame is damaged, it returns an error and dst unchanged.
func (s *Store) Read(f Frame, dst []byte) ([]byte, error) {
	file, folder, err := s.holds(f)
	if err != nil {
		return dst, err
	}
	k := f.kept
	u := <-s.unpackers
	defer func() { s.unpackers <- u.rest() }()
	if u == nil {
		u = newUnpacker()
	}
	u.in = slices.Grow(u.in[:0], k.disk)[:k.disk]
	in := u.in
	if err := readExtents(file, folder, k.extents, in, 0); err != nil {
		return dst, err
	}
	if crc32.Checksum(in, castagnoli) != k.sum {
		return dst, fmt.Errorf("read spill frame of %d bytes in %s: its checksum does not match, so something else wrote "+
			"to the file or the disk is damaged; run again with another TMPDIR", k.disk, folder.framesPath())
	}
	out, err := u.unpack(slices.Grow(dst, k.raw), k.raw)
	if err != nil {
		return dst, fmt.Errorf("decompress spill frame in %s: %w", folder.framesPath(), err)
	}
	return out, nil
}

// ReadAt fills dst with bytes of a frame that Keep wrote, beginning at offset at.
func (s *Store) ReadAt(f Frame, dst []byte, at int64) error {
	file, folder, err := s.holds(f)
	if err != nil {
		return err
	}
	return readExtents(file, folder, f.kept.extents, dst, at)
}

// holds returns the file and folder that hold a frame, or an error if the frame was freed or never written.
func (s *Store) holds(f Frame) (file, *folder, error) {
	if f.kept == nil {
		return nil, nil, errors.New("read spill frame: it was never written")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, errClosed
	case f.kept.freed:
		return nil, nil, errors.New("read spill frame: it has been freed")
	}
	return s.file, s.folder, nil
}

// readExtents fills dst with the bytes of the extents, after the first skip bytes.
func readExtents(from file, in *folder, extents []extent, dst []byte, skip int64) error {
	for _, e := range extents {
		if skip >= e.bytes {
			skip -= e.bytes
			continue
		}
		n := min(int(e.bytes-skip), len(dst))
		if _, err := from.ReadAt(dst[:n], e.at+skip); err != nil {
			return fmt.Errorf("read spill frame at byte %d of %s: %w", e.at+skip, in.framesPath(), err)
		}
		dst, skip = dst[n:], 0
	}
	return nil
}

// Free frees a frame, which then can no longer be read. Freeing it again, or freeing the zero Frame, does nothing.
func (s *Store) Free(f Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := f.kept
	if k == nil || k.freed || s.closed {
		return
	}
	k.freed = true
	s.usage.Frames--
	s.usage.RawBytes -= int64(k.raw)
	s.giveBack(k)
}

// Usage returns the current and past sizes of the store.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Close removes all frames and the store's folder. The store may be nil. All other calls must have returned.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.usage.Frames, s.usage.RawBytes, s.usage.DiskBytes = 0, 0, 0
	if s.folder == nil {
		return nil
	}
	if err := cmp.Or(s.file.Close(), s.folder.remove()); err != nil {
		return fmt.Errorf("remove spill folder: %w", err)
	}
	return nil
}
