package storetest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is an object store as seen by one of the processes that share it. It fulfils the contract of jobdir.Store.
type Memory struct {
	*Shared
	process string
}

// Shared is the state common to all processes.
type Shared struct {
	// Objects maps names to contents. A test may change it while nothing else runs.
	Objects map[string]string
	// Late is how long only the process that put an object sees it listed, as in a shared folder with client caches.
	Late time.Duration

	mu     sync.Mutex
	exists error
	since  map[string]time.Time // when each object was first put
	by     map[string]string    // writers by object
}

// NewMemory returns an empty store. exists is PutAbsent's error for an existing object.
func NewMemory(exists error) *Memory {
	return &Memory{Shared: &Shared{Objects: map[string]string{}, exists: exists, since: map[string]time.Time{},
		by: map[string]string{}}}
}

// As returns the same store as seen by another process.
func (m *Memory) As(process string) *Memory { return &Memory{m.Shared, process} }

func (m *Memory) String() string { return "memory" }

// PutAbsent puts an object if the name is free.
func (m *Memory) PutAbsent(_ context.Context, name string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.Objects[name]; there {
		return m.exists
	}
	m.put(name, body)
	return nil
}

func (m *Memory) put(name string, body []byte) {
	if _, there := m.Objects[name]; !there {
		m.since[name], m.by[name] = time.Now(), m.process
	}
	m.Objects[name] = string(body)
}

func (m *Memory) Put(_ context.Context, name string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, body)
	return nil
}

func (m *Memory) PutFile(ctx context.Context, name, file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return m.Put(ctx, name, body)
}

func (m *Memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, ok := m.Objects[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(body), nil
}

// GetRange returns n bytes from an offset, all of which must exist.
func (m *Memory) GetRange(ctx context.Context, name string, from, n int64) ([]byte, error) {
	body, err := m.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if int64(len(body)) < from+n {
		return nil, errors.New("it ends before")
	}
	return body[from : from+n], nil
}

func (m *Memory) List(_ context.Context, prefix string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.Objects)) {
		if strings.HasPrefix(name, prefix) && (m.by[name] == m.process || time.Since(m.since[name]) >= m.Late) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (m *Memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.Objects, name)
	return nil
}
