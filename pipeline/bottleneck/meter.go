package bottleneck

import (
	"cmp"
	"slices"
	"time"
)

// window is the time over which processor use is measured and the current word is chosen.
const window = 500 * time.Millisecond

// saturated is the share of all processors that a process must use or wait for to count as short of CPU.
const saturated = 0.9

// Spent is the time spent by word.
type Spent [count]time.Duration

func (s *Spent) Add(later *Spent) {
	for w, d := range later {
		s[w] += d
	}
}

// Options of a Meter.
type Options struct {
	// Used returns the CPU seconds that the process has used or waited for so far. If it is nil, CPU is never found.
	Used       func() float64
	Processors int
	// Each, if not nil, is called at the end of each window with its beginning and how its time was spent.
	Each func(begun time.Time, s *Spent)
}

// Meter sums the time for which each word was true. It is not safe for concurrent use.
type Meter struct {
	o      Options
	word   Word // the word that is true since at
	unsure bool // CPU may be the cause instead
	at     time.Time
	begun  time.Time // when the window began
	used   float64   // CPU seconds used at begun
	spent  Spent     // time spent in the window
	maybe  Spent     // the part of spent that counts as CPU if all processors were in use
	total  Spent
	now    Word
	late   time.Duration // time until a Note that Wants has postponed is due
}

// NewMeter returns a meter that begins with the first Note.
func NewMeter(o Options) *Meter { return &Meter{o: o} }

// Wants reports whether every has passed since the last Note, so that one is due. If not, Due returns how long to wait.
func (m *Meter) Wants(now time.Time, every time.Duration) bool {
	m.late = 0
	if passed := now.Sub(m.at); !m.at.IsZero() && passed >= 0 && passed < every {
		m.late = every - passed
		return false
	}
	return true
}

// Note sets the current word. Link, Reader, Disk and unsure words count as CPU if all processors are in use.
func (m *Meter) Note(now time.Time, w Word, unsure bool) {
	if m.at.IsZero() {
		m.at, m.begun, m.used = now, now, m.cpu()
	}
	passed := max(0, now.Sub(m.at))
	m.spent[m.word] += passed
	if m.unsure || m.word == Link || m.word == Reader || m.word == Disk {
		m.maybe[m.word] += passed
	}
	m.word, m.unsure, m.at = w, unsure, now
	if now.Sub(m.begun) >= window {
		m.end(now)
	}
}

// Before adds a time for which the load waited for inputs before the first Note, unless it is shorter than a window.
func (m *Meter) Before(from, to time.Time, used float64) {
	passed := to.Sub(from)
	if passed < window {
		return
	}
	w := Reader
	if m.exhausted(used, passed) {
		w = CPU
	}
	m.total[w] += passed
	for at := from; m.o.Each != nil && at.Before(to); at = at.Add(window) {
		var s Spent
		s[w] = min(window, to.Sub(at))
		m.o.Each(at, &s)
	}
}

// exhausted reports whether the process used all processors during d.
func (m *Meter) exhausted(used float64, d time.Duration) bool {
	return used >= saturated*d.Seconds()*float64(max(1, m.o.Processors))
}

func (m *Meter) End(now time.Time) {
	if !m.at.IsZero() {
		m.Note(now, m.word, m.unsure)
		m.end(now)
	}
}

// Due returns the time until the next Note is due.
func (m *Meter) Due(now time.Time) time.Duration {
	if m.late > 0 {
		return m.late
	}
	return max(0, window-now.Sub(m.begun))
}

func (m *Meter) end(now time.Time) {
	passed := now.Sub(m.begun)
	if passed <= 0 {
		return
	}
	used := m.cpu()
	if m.exhausted(used-m.used, passed) {
		for w, d := range m.maybe {
			m.spent[w] -= d
			m.spent[CPU] += d
		}
	}
	longest := Word(0)
	for w, d := range m.spent {
		if d > m.spent[longest] {
			longest = Word(w)
		}
		m.total[w] += d
	}
	m.now = longest
	if m.o.Each != nil {
		m.o.Each(m.begun, &m.spent)
	}
	m.begun, m.used, m.spent, m.maybe = now, used, Spent{}, Spent{}
}

func (m *Meter) cpu() float64 {
	if m.o.Used == nil {
		return 0
	}
	return m.o.Used()
}

// Now returns the word that was true for most of the last window.
func (m *Meter) Now() Word {
	if m.now == None {
		return m.word
	}
	return m.now
}

// Part is a word's share of the time.
type Part struct {
	Word    Word
	Seconds float64
	Share   float64
}

// Parts returns all words that were true so far, longest first.
func (m *Meter) Parts() (parts []Part) {
	sum := 0.0
	for _, w := range Words() {
		if s := m.total[w].Seconds(); s > 0 {
			parts = append(parts, Part{Word: w, Seconds: s})
			sum += s
		}
	}
	for i := range parts {
		parts[i].Share = parts[i].Seconds / sum
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return parts
}
