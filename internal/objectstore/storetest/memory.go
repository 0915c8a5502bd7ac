package storetest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is an object store as seen by one of the processes that share it. It implements jobdir.Store.
type Memory struct {
	*Shared
	process string
}

// Shared is the state that all processes share.
type Shared struct {
	// Objects maps names to contents. A test may change it while nothing else runs.
	Objects map[string]string
	// Late is how long a new object is listed only for the process that put it, as in a shared folder with caches.
	Late time.Duration

	mu     sync.Mutex
	exists error
	since  map[string]time.Time // time of the first put, by object
	by     map[string]string    // process that put it, by object
}

// NewMemory returns an empty store. PutAbsent will return exists for an existing object.
func NewMemory(exists error) *Memory {
	return &Memory{Shared: &Shared{Objects: map[string]string{}, exists: exists, since: map[string]time.Time{},
		by: map[string]string{}}}
}

// As returns the same store as seen by another process.
func (m *Memory) As(process string) *Memory { return &Memory{m.Shared, process} }

func (m *Memory) String() string { return "memory" }

// PutAbsent puts an object unless the name is taken.
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

// GetRange returns n bytes beginning at an offset. A shorter object is an error.
func (m *Memory) GetRange(ctx context.Context, name string, from, n int64) ([]byte, error) {
	body, err := m.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if int64(len(body)) < from+n {
		return nil, fmt.Errorf("%s has %d bytes, but %d from %d on were requested", name, len(body), n, from)
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
