package pipeline

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/internal/table"
)

// clocked notes when the partitions were read.
type clocked struct {
	begun time.Time
	at    []time.Duration
}

func (c *clocked) Read(now time.Time) ([]table.Value, bool, error) {
	c.at = append(c.at, now.Sub(c.begun).Round(time.Second))
	return nil, true, nil
}

func TestTheMapIsReadSoonInTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clocked{begun: time.Now()}
		s := newPartitionPoller(c, 0)
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		if err := s.run(ctx); err != nil {
			t.Fatal(err)
		}
		// A quarter of a second passes after each reading before the next may come.
		if want := []time.Duration{1 * time.Second, 3 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 62 * time.Second, 93 * time.Second}; !slices.Equal(c.at, want) {
			t.Errorf("read after %v, want %v", c.at, want)
		}
	})
}
