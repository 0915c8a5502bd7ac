package sim

import (
	"math"
	"sync"
	"time"

	"example.com/tsimport/engine/limiter"
)

// instanceBurst is for how long an instance saves up what is not used. Usage is judged by the instant.
const instanceBurst = 100 * time.Millisecond

// Instance is what all tables of an instance may take together. It is safe for concurrent use.
type Instance struct {
	mu    sync.Mutex
	limit *limiter.Limiter
	count InstanceCount
}

// InstanceCount is what happened to requests.
type InstanceCount struct {
	Units   int64 `json:"units"`            // of requests let through to their tables
	Refused int64 `json:"refused_requests"` // 429 OTSFlowControl
	Rows    int64 `json:"refused_rows"`     // of those
}

// NewInstance is an instance that takes so many units a second from now on, with nothing saved up.
func NewInstance(rate float64, now time.Time) *Instance {
	c := Config{Burst: instanceBurst}
	return &Instance{limit: c.limiter(min(rate, maxUnits), now.UnixNano())}
}

// Take lets a request through, or refuses it as a whole.
func (i *Instance) Take(now time.Time, units float64, rows int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if taken, _ := limiter.Admit(now, []limiter.Row{{Units: units}}, i.limit); taken == 0 {
		i.count.Refused++
		i.count.Rows += int64(rows)
		return false
	}
	i.count.Units += int64(math.Round(units))
	return true
}

// Count is what has happened since the start, or the last Reset.
func (i *Instance) Count() InstanceCount {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.count
}

// Reset forgets the counts, and what was saved up.
func (i *Instance) Reset(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.count = InstanceCount{}
	i.limit.Restart(now)
}
