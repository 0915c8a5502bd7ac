package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Sync returns when everything that was acknowledged survives a crash. A store that syncs every write has done so already,
// one in memory never does.
func (s *Store) Sync() (err error) {
	if !s.noSync || s.memory || s.read {
		return nil
	}
	s.commits <- struct{}{}
	defer func() { <-s.commits }()
	defer func() {
		if p := recover(); p != nil { // as in apply
			err = fmt.Errorf("sync store: %v", p)
			s.health.fail(err)
		}
	}()
	if cause := s.health.cause(); cause != nil {
		return fmt.Errorf("sync store: %w", cause)
	}
	// An empty entry of the log, synced, takes all entries before it along.
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		s.health.fail(err)
		return fmt.Errorf("sync store: %w", err)
	}
	return nil
}
