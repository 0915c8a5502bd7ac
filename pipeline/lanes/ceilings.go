package lanes

import (
	"cmp"
	"math"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/sendwindow"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
)

// ceilings are the limits over all lanes of a load: its own, the instance's, the tables', and the size of a request.
type ceilings struct {
	instance           *ratelimit.Shared // the service's limit over all tables
	tables             tableRates
	rows, units, bytes *ratelimit.Bucket // nil if there is no limit
	share              *share            // share of the limits common to several loads; nil if there are none
	maxRows, maxBytes  int               // limits of a batch
	learnt             *writer.Size      // limit of bodies, learnt from a gateway's refusals
	window             *sendwindow.Window
	room               func() int // returns how many requests can be in flight
}

// The service judges usage at each instant, so ceilings hold in every tenth of a second, plus these bursts and one row.
const (
	// ceilingBurst is the time whose unused part of a ceiling may be used later.
	ceilingBurst = 20 * time.Millisecond
	// ceilingBatch is the time for which a batch may use up a ceiling: longer ones would make rows leave in bursts.
	ceilingBatch = 0.02 // seconds
)

func newCeilings(o *Options) *ceilings {
	return &ceilings{
		instance: ratelimit.NewShared(nil), tables: tableRates{},
		rows:  ratelimit.NewBucket(o.Rates.MaxRows, ceilingBurst),
		units: ratelimit.NewBucket(o.Rates.MaxWCU, ceilingBurst),
		bytes: ratelimit.NewBucket(o.Rates.MaxBytes, ceilingBurst), maxRows: cmp.Or(o.BatchRows, table.MaxBatchRows),
		maxBytes: cmp.Or(o.BatchBytes, table.MaxBatchBytes), learnt: o.Learnt, window: sendwindow.New(o.Timeout),
		share: o.Shared.join(), room: func() int { return math.MaxInt },
	}
}

func (c *ceilings) wait(now time.Time) time.Duration {
	return max(c.rows.Wait(now), c.units.Wait(now), c.bytes.Wait(now))
}

func (c *ceilings) instanceWait(now time.Time, units float64) time.Duration {
	return c.instance.Next(now, units).Sub(now)
}

// shared reports whether one rate limits all lanes together.
func (c *ceilings) shared(now time.Time) bool {
	rows, units, bytes := c.rates()
	return rows+units+bytes > 0 || c.instance.Limits(now) || c.tables.shared(now)
}

// rates returns the ceilings in rows, units and bytes per second, the lower of own and shared ones; 0 means none.
func (c *ceilings) rates() (rows, units, bytes float64) {
	rows, units, bytes = c.share.rates()
	return lower(rows, c.rows.Rate()), lower(units, c.units.Rate()), lower(bytes, c.bytes.Rate())
}

// lower returns the lower of two limits; 0 means no limit.
func lower(a, b float64) float64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

func (c *ceilings) landed(r *Result, answered bool) {
	if !r.flight.silent {
		c.share.landed()
	}
	c.window.Landed(r.done, r.flight.mark, answered)
}

// silent removes an unanswered request from those in flight.
func (c *ceilings) silent(m *sendwindow.Mark) {
	c.share.landed()
	c.window.Silent(m)
	c.instance.Silent()
}

func (c *ceilings) sent(now time.Time, table string, rows int, units, bytes float64) {
	c.rows.Take(now, float64(rows))
	c.units.Take(now, units)
	c.bytes.Take(now, bytes)
	c.instance.Sent(now, units)
	c.tables.of(table).Sent(now, units)
	c.share.sent(now, rows, units, bytes)
}

func (c *ceilings) batchRows() int {
	rate, _, _ := c.rates()
	if rate == 0 {
		return c.maxRows
	}
	return min(c.maxRows, max(1, int(rate*ceilingBatch)))
}

// batchUnits returns the units that a batch for a table may hold, of those that its lane may send.
func (c *ceilings) batchUnits(table string, units float64) float64 {
	if _, rate, _ := c.rates(); rate > 0 {
		units = min(units, max(1, rate*ceilingBatch))
	}
	return min(units, c.instance.Most(), c.tables.of(table).Most())
}

// batchBytes returns the maximum size of a request: as configured, or less for a gateway, a slow link or a ceiling.
func (c *ceilings) batchBytes() int {
	most := min(c.maxBytes, c.window.RequestBytes(c.room()))
	if learnt := c.learnt.Limit(); learnt > 0 {
		most = min(most, learnt)
	}
	if _, _, rate := c.rates(); rate > 0 {
		most = min(most, max(1, int(rate*ceilingBatch)))
	}
	return most
}

// wanted returns the number of rows of a full batch, given the units that a table's lane may send.
func (c *ceilings) wanted(table string, units, perRow float64) int {
	return min(c.batchRows(), int(math.Ceil(c.batchUnits(table, units)/perRow)))
}
