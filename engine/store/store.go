package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
)

type Options struct {
	NoSync   bool             // acknowledged rows are neither synced nor passed to the system; tables are synced
	ReadOnly bool             // refuses writes
	InMemory bool             // keeps all data in memory
	Now      func() time.Time // nil means time.Now

	ThroughputInterval time.Duration // minimum time between changes of a table's reserved throughput; 0 means none
	MaxTables          int           // 0 means no quota
	FS                 vfs.FS        // nil means the operating system's; tests inject faults
}

// Store is an open directory. It is safe for concurrent use.
//
// Locks are taken in this order: ddl (shared by writes, exclusive for table operations), the stripes of the rows,
// commits. An unconditional Put or Delete shares its stripes, because Pebble orders it; a write that reads the row
// first owns them until the batch is visible. Writes hold no lock while the log is synced, so that they share syncs;
// table operations hold ddl. (numbers.mu, taken before commits, is held during one sync every ten seconds.)
type Store struct {
	db      *pebble.DB
	dirLock *pebble.Lock
	o       Options      // Now is set, and for a store in memory NoSync
	clock   atomic.Int64 // see millis
	choices chosen
	late    late
	numbers numbers

	transactions transactions

	readForSplits int64 // the constant, or a test's value
	waitingLimit  int64 // maxWaitingBytes, or a test's value

	ddl    sync.RWMutex
	tables map[string]*Table // guarded by names
	names  sync.RWMutex
	nextID uint32 // guarded by ddl
	// lastCreated is the creation time of the last table in Unix microseconds; guarded by ddl.
	lastCreated int64
	seed        maphash.Seed
	stripes     [stripeCount]sync.RWMutex

	// commits admits one batch at a time, because after a failed log write Pebble would let others wait forever.
	commits chan struct{}
	serial  uint64 // number of the last batch; guarded by commits
	synced  synced
	health  health
	gather  gather
}

// Open opens the store in dir, and creates it if dir is missing or empty.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{
		o: o, readForSplits: readForSplits, waitingLimit: maxWaitingBytes, tables: map[string]*Table{},
		seed: maphash.MakeSeed(), commits: make(chan struct{}, 1),
	}
	s.health.failed = make(chan struct{})
	s.health.flushFailed = make(chan struct{}, 1)
	if o.Now == nil {
		s.o.Now = time.Now
	}
	fs := o.FS
	if o.InMemory {
		dir, fs, s.o.NoSync = "store", vfs.NewMem(), true
	} else if fs == nil {
		fs = private{vfs.Default}
	}
	if err := prepareDir(fs, dir, o.ReadOnly); err != nil {
		return nil, err
	}
	if err := s.open(fs, dir, o); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) open(fs vfs.FS, dir string, o Options) error {
	data := fs.PathJoin(dir, dataDir)
	lock, err := pebble.LockDirectory(data, fs)
	if err != nil {
		return lockError(dir, err)
	}
	refuse := func(err error) error { return fmt.Errorf("open store %s: %w", dir, oneLine(err)) }
	acknowledged, exists, err := readSynced(fs, dir)
	if err == nil && !s.o.InMemory {
		err = s.checkLogs(fs, dir, lock, acknowledged)
	}
	if err != nil {
		lock.Close()
		return refuse(err)
	}
	po := s.pebbleOptions(fs, o)
	po.Lock = lock
	po.ErrorIfNotExists = exists // if SYNCED exists, so does a manifest; a new one would be empty
	if s.db, err = pebble.Open(data, po); err != nil {
		lock.Close()
		return refuse(err)
	}
	s.dirLock = lock
	s.gather.hold(s.gather.count > 0)
	if s.serial, err = readSerial(s.db); err == nil && !s.o.InMemory && !s.o.ReadOnly {
		err = s.synced.open(fs, dir, max(acknowledged, s.serial), exists)
	}
	if err == nil {
		err = s.loadTables()
	}
	if err == nil {
		err = s.loadNumbers()
	}
	if err == nil && !s.o.ReadOnly {
		err = s.catchUpAll()
	}
	if err != nil {
		s.gather.hold(false)
		s.db.Close()
		lock.Close()
		return refuse(err)
	}
	return nil
}

// oneLine reduces an error to its first line, because Pebble adds many lines about corruption.
func oneLine(err error) error {
	if line, _, more := strings.Cut(err.Error(), "\n"); more {
		return errors.New(line)
	}
	return err
}

// pebbleOptions favours loading. Inserting into a memtable larger than the processor's caches takes as long as the rest
// of a write, under the lock of commits, so memtables are small. To keep compactions rare, a flush writes several of
// them (see gather), and their files stay in level 0, where filters speed up reads of single keys.
func (s *Store) pebbleOptions(fs vfs.FS, o Options) *pebble.Options {
	po := &pebble.Options{
		FS:                          fs,
		ReadOnly:                    o.ReadOnly,
		DisableWAL:                  o.InMemory,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                8 << 20,
		MemTableStopWritesThreshold: 32,
		L0CompactionThreshold:       256,
		L0StopWritesThreshold:       1024,
		LBaseMaxBytes:               1 << 30,
		CacheSize:                   64 << 20,
		BytesPerSync:                1 << 20,
		MaxOpenFiles:                500,
		CompactionConcurrencyRange:  s.health.compactions,
		Logger:                      logger{&s.health},
		EventListener:               s.health.listener(),
	}
	if !o.InMemory { // a store in memory has no logs
		s.gather.after, s.gather.count, s.gather.most = 16, 4, 10*time.Second
		s.gather.listen(po.EventListener)
	}
	po.TargetFileSizes[0], po.TargetFileSizes[1] = 16<<20, 16<<20 // creating, syncing and listing each file costs time
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	return po
}

// Close flushes and closes the store. All other calls must have returned.
func (s *Store) Close() (err error) {
	s.gather.hold(false)
	if cause := s.health.cause(); cause != nil {
		// Pebble's Close can wait forever on a failed log. The log has everything acknowledged.
		if s.health.corrupt.Load() {
			s.db.Close()
		}
		s.synced.close()
		s.dirLock.Close()
		return fmt.Errorf("close store: %w", cause)
	}
	if !s.o.ReadOnly && !s.o.InMemory {
		err = s.flush()
	}
	err = cmp.Or(err, s.db.Close())
	if err == nil { // all data is flushed and synced
		err = s.synced.advance(s.serial)
	}
	if err = cmp.Or(err, s.synced.close(), s.dirLock.Close()); err != nil {
		err = fmt.Errorf("close store: %w", err)
	}
	return err
}

// flush writes the memtable to disk, so that the next Open need not replay a log. Pebble retries a failing flush, on a
// full disk forever, so the first failure ends the wait. The log has all data.
func (s *Store) flush() error {
	done, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-s.health.flushFailed:
	case <-s.health.failed:
	}
	return s.health.state()
}

// commit makes a batch visible. If sync is set, the caller must call wait. An error that says that nothing was applied
// can be trusted; the code of others is CodeInternalServerError.
func (s *Store) commit(ctx context.Context, b *pebble.Batch, sync bool) *wire.Error {
	select {
	case s.commits <- struct{}{}:
	case <-ctx.Done():
		return cancelled()
	case <-s.health.failed:
		return s.health.refusal()
	}
	defer func() { <-s.commits }()
	if s.o.ReadOnly {
		return wire.Failf(wire.CodeNoPermission, "The store is open for reading only: nothing was applied.")
	}
	if err := s.health.refusal(); err != nil {
		return err
	}
	if err := s.apply(b, sync); err != nil {
		s.health.fail(err)
	}
	return s.health.ambiguous() // even if apply returned nil, because Pebble reports a failed log only to its logger
}

func cancelled() *wire.Error {
	return wire.Failf(wire.CodePartitionUnavailable, "The request was cancelled: nothing of it was applied.")
}

// apply passes the batch to Pebble, which panics if it cannot start a new log file.
func (s *Store) apply(b *pebble.Batch, sync bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("commit: %v", p)
		}
	}()
	if s.o.InMemory {
		return s.db.Apply(b, pebble.NoSync)
	}
	if err := s.giveSerial(b); err != nil {
		return err
	}
	if !sync {
		return s.db.Apply(b, pebble.NoSync)
	}
	return s.db.ApplyNoSyncWait(b, pebble.Sync)
}

// wait waits until a batch that was committed with sync is on disk.
func (s *Store) wait(b *pebble.Batch) *wire.Error {
	if b.Empty() {
		return nil
	}
	if err := b.SyncWait(); err != nil {
		s.health.fail(err)
		return s.health.ambiguous()
	}
	return s.acknowledge(b)
}

// commitAndWait commits a batch and waits, for callers without row locks. It syncs even with NoSync, to protect tables.
func (s *Store) commitAndWait(ctx context.Context, b *pebble.Batch) *wire.Error {
	err := s.commit(ctx, b, !s.o.InMemory)
	if err == nil && !s.o.InMemory {
		err = s.wait(b)
	}
	return err
}

// Sync syncs all acknowledged writes to disk. It does nothing if every write is synced, or the store is in memory.
func (s *Store) Sync() (err error) {
	if !s.o.NoSync || s.o.InMemory || s.o.ReadOnly {
		return nil
	}
	s.commits <- struct{}{}
	defer func() { <-s.commits }()
	defer func() {
		if p := recover(); p != nil { // see apply
			err = fmt.Errorf("sync store: %v", p)
			s.health.fail(err)
		}
	}()
	if cause := s.health.cause(); cause != nil {
		return fmt.Errorf("sync store: %w", cause)
	}
	// Syncing an empty log entry syncs all entries before it.
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		s.health.fail(err)
		return fmt.Errorf("sync store: %w", err)
	}
	return nil
}
