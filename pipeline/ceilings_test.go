package pipeline

import (
	"sync"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/engine/server"
)

// sends are what a load has sent, by when.
type sends struct {
	mu    sync.Mutex
	at    []time.Time
	units []float64
}

func (s *sends) add(at time.Time, units float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.units = append(s.at, at), append(s.units, units)
}

// most is the largest sum in any so long a time.
func (s *sends) most(within time.Duration) (most float64) {
	from, sum := 0, 0.0
	for to := range s.at {
		sum += s.units[to]
		for s.at[to].Sub(s.at[from]) >= within {
			sum -= s.units[from]
			from++
		}
		most = max(most, sum)
	}
	return most
}

// noted is a pacer that never waits, and notes when the dispatcher sends.
type noted struct {
	restless
	sends *sends
}

func (w noted) Sent(now time.Time, units float64) { w.sends.add(now, units) }

func TestCeilingsHoldInEachTenthOfASecond(t *testing.T) {
	const rows, rate = 1500, 1000.0
	for name, set := range map[string]func(*Rates){
		"rows":  func(r *Rates) { r.MaxRows = rate },
		"units": func(r *Rates) { r.MaxWCU = rate },
		"bytes": func(r *Rates) { r.MaxBytes = rate * 15 }, // id and a, their values: about 15 bytes a row
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
			var left, met sends
			w.plan.Decide = func(r faults.Request) faults.Fault {
				met.add(time.Now(), float64(r.Rows))
				return faults.Fault{}
			}
			cfg := w.config(w.file("in.csv", shuffled(rows)))
			cfg.pacer = func() pacer { return noted{sends: &left} }
			set(&cfg.Write.Rates)
			// What is saved up at the beginning and the last request need not be waited for.
			least := rows/rate - ceilingBurst.Seconds() - 0.2
			if r := w.load(cfg); r.Written != rows || r.Seconds < least {
				t.Errorf("%d written in %.3f s, want %.3f or more", r.Written, r.Seconds, least)
			}
			// What flows in, and beside it what was saved up and a request: half as much again is never reached.
			const limit = 1.5 * rate / 10
			if most := left.most(100 * time.Millisecond); most > limit {
				t.Errorf("%.0f rows left within a tenth of a second, of which %v may", most, limit)
			}
			if most := met.most(100 * time.Millisecond); most > limit {
				t.Errorf("%.0f rows arrived within a tenth of a second, of which %v may", most, limit)
			}
		}))
	}
}

// timed is a pacer that never waits, and notes which answers are to requests of which it was not told.
type timed struct {
	restless
	flying  map[time.Time]int
	unknown *int
}

func (p timed) Sent(now time.Time, _ float64) { p.flying[now]++ }

func (p timed) Answered(sent, _ time.Time, _, _ float64) {
	if p.flying[sent]--; p.flying[sent] < 0 {
		*p.unknown++
	}
}

func TestPacersKnowTheRequestsThatAreAnswered(t *testing.T) {
	w := newWorld(t)
	w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
	cfg := w.config(w.file("in.csv", shuffled(1500)))
	unknown := 0
	cfg.pacer = func() pacer { return timed{flying: map[time.Time]int{}, unknown: &unknown} }
	if r := w.load(cfg); r.Written != 1500 || unknown > 0 {
		t.Errorf("%d written, %d answers to requests that never left", r.Written, unknown)
	}
}
