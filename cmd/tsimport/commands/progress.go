package commands

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/ledger"
)

// board shows the progress of a job on a terminal, one line per running load.
type board struct {
	mu      sync.Mutex
	screens []*screen
}

func (b *board) add(s *screen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.screens = append(b.screens, s)
}

func (b *board) remove(s *screen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.screens = slices.DeleteFunc(b.screens, func(t *screen) bool { return t == s })
}

// boardLines limits the lines, because lines that have scrolled off the top cannot be repainted.
const boardLines = 16

func (b *board) lines() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, s := range b.screens {
		if i == boardLines {
			return append(lines, fmt.Sprintf("… and %d more", len(b.screens)-i))
		}
		lines = append(lines, s.w.load+": "+s.progressText())
	}
	return lines
}

// repaint paints the lines repeatedly until stop is called, which erases them.
func (d *display) repaint(lines func() []string) (stop func()) {
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		defer d.paint()
		for tick := time.NewTicker(barEvery); ; {
			select {
			case <-tick.C:
				d.paint(lines()...)
			case <-over:
				tick.Stop()
				return
			}
		}
	}()
	return func() { close(over); <-stopped }
}

// Intervals of progress.
const (
	firstLine = time.Second
	lineEvery = 5 * time.Second
	barEvery  = 250 * time.Millisecond
)

// watch shows progress until the load ends: a bar on a terminal, or else lines, the first after a second.
func (s *screen) watch() {
	defer s.stopped.Done()
	first, interval, show := firstLine, lineEvery, func() { s.say.Line("%s", s.progressText()) }
	switch {
	case s.w.log != nil:
		show = func() { s.logRejects(); s.logProgress() }
		defer s.logRejects()
	case s.w.terminal:
		first, interval, show = barEvery, barEvery, s.barShower()
		defer s.w.paint()
	}
	tick := time.NewTicker(first)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			tick.Reset(interval)
			show()
		case <-s.stopping:
			return
		}
	}
}

// awaitInputs says at growing intervals that no input has arrived, until arrived or stop is called.
func (s *screen) awaitInputs() {
	if s.say == nil {
		return
	}
	s.stopped.Add(1)
	arrived := make(chan struct{})
	s.arrived = sync.OnceFunc(func() { close(arrived) })
	go func() {
		defer s.stopped.Done()
		for wait := lineEvery; ; wait *= 2 {
			select {
			case <-time.After(wait):
			case <-arrived:
				return
			case <-s.stopping:
				return
			}
			if w := bottleneck.Word(s.progress.Hindrance.LimitedBy.Load()); w != bottleneck.None { // the load waits for inputs
				s.say.Line("no rows yet after %v: inputs are opened and sampled (limited by %v)", round(time.Since(s.start)), w)
			}
		}
	}()
}

func (s *screen) barShower() (show func()) {
	// The bar only renders its text; the display writes it.
	bar := progressbar.NewOptions64(s.progress.BytesTotal.Load(),
		progressbar.OptionSetWriter(io.Discard), progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionSetRenderBlankState(true))
	return func() {
		s.moveBar(bar)
		s.w.paint(strings.TrimSpace(bar.String()))
	}
}

func (s *screen) moveBar(bar *progressbar.ProgressBar) {
	bar.Describe(s.counts() + s.left(time.Now()))
	// A full bar would finish while rows are still being written.
	done := s.bytesDone()
	if total := s.progress.BytesTotal.Load(); total > 0 {
		if limit := s.progress.Limit.Load(); limit > 0 {
			done = max(done, int64(float64(total)*float64(s.recordsDone())/float64(limit)))
		}
		done = min(done, total-1)
	}
	_ = bar.Set64(done)
}

// bytesDone estimates the input bytes of final rows, because reading may be far ahead of writing.
func (s *screen) bytesDone() int64 {
	p := &s.progress
	return doneOf(max(p.BytesRead.Load(), s.read), s.recordsDone(), p.Ended.Read.Load())
}

// recordsDone returns the number of final records or, in a dry run, of records read.
func (s *screen) recordsDone() int64 {
	p := &s.progress
	if s.dryRun {
		return p.Ended.Read.Load()
	}
	return p.Ended.Written.Load() + p.Ended.Rejected.Load() + p.Ended.Superseded.Load() + p.Ended.ConditionFailed.Load() +
		p.Ended.Archived.Load()
}

// doneOf estimates the part of the bytes read that belongs to final records.
func doneOf(bytes, final, read int64) int64 {
	if read == 0 {
		return bytes
	}
	return int64(float64(bytes) * min(1, float64(final)/float64(read)))
}

// lookBack is the time over which the rate for an estimate is measured. It is short, because a load slows down when it
// has only rows of one slow partition left. A rate cannot be measured over less than lookFor.
const (
	lookBack = 10 * time.Second
	lookFor  = 3 * time.Second
)

// mark is the progress at one time.
type mark struct {
	at      time.Time
	done    int64 // bytes done
	records int64
}

// left estimates the remaining time from the latest rate and the slowest partition. It is "" if unknown.
func (s *screen) left(now time.Time) string {
	total, limit := s.progress.BytesTotal.Load(), s.progress.Limit.Load()
	to := mark{now, s.bytesDone(), s.recordsDone()}
	if total <= 0 && limit <= 0 {
		return ""
	}
	if to.records <= s.final { // this attempt has not finished any record
		s.marks, to = nil, mark{now, s.done, s.final}
	} else if s.marks == nil {
		s.marks = []mark{{s.began, s.done, s.final}}
	}
	s.marks = append(s.marks, to)
	for len(s.marks) > 1 && now.Sub(s.marks[1].at) >= lookBack {
		s.marks = s.marks[1:]
	}
	from := s.marks[0]
	passed, slowest := float64(now.Sub(from.at)), time.Duration(s.progress.SlowestLeft.Load())*time.Millisecond
	left := time.Duration(math.MaxInt64)
	// The load ends with the input, or with the last record that --limit allows.
	for _, part := range []struct{ from, to, all int64 }{{from.done, to.done, total}, {from.records, to.records, limit}} {
		switch {
		case part.all <= 0:
		case part.to >= part.all:
			return ""
		case part.to > part.from && now.Sub(from.at) >= lookFor:
			left = min(left, time.Duration(min(passed*float64(part.all-part.to)/float64(part.to-part.from), longestLeft)))
		}
	}
	if left == math.MaxInt64 { // the slowest partition alone says too little: only rows that have been read wait for it
		return ""
	}
	return fmt.Sprintf(", about %v left", round(max(left, slowest)))
}

// longestLeft limits an estimate.
const longestLeft = float64(10 * 365 * 24 * time.Hour)

func (s *screen) counts() string {
	p := &s.progress
	rate := float64(max(p.Ended.Written.Load()-s.written, 0)) / time.Since(s.start).Seconds() // rows of this attempt
	text := fmt.Sprintf("%s rows, %s rows/s", words.Grouped(p.Ended.Written.Load()), words.Grouped(int64(rate)))
	if w := bottleneck.Word(p.Hindrance.LimitedBy.Load()); w != bottleneck.None {
		text += fmt.Sprintf(" (limited by %v)", w)
	}
	text = plus(text, p.Ended.Rejected.Load(), "rejected")
	if n, since, known := p.Lag(); known && n == 0 {
		text += fmt.Sprintf(", every change applied, the last %v old", round(since))
	} else if known {
		text += fmt.Sprintf(", behind by %s changes, %v", words.Grouped(n), round(since))
	}
	text = plus(plus(text, p.Ended.Archived.Load(), "archived"), p.Throttled.Load(), "throttled")
	if n, found, requests := p.LookUps(); requests > 0 {
		text += fmt.Sprintf(", %s rows looked up (%s found, %s requests)", words.Grouped(n), words.Grouped(found),
			words.Grouped(requests))
	}
	text = plus(text, p.Swept.Load(), "checked for copies")
	if trouble, _ := p.Hindrance.Trouble.Load().(string); trouble != "" {
		text += fmt.Sprintf(", trying again: %.100s", trouble)
	}
	if w := p.Wait(); w != nil {
		text += ", " + waitText(w)
	}
	return text
}

// waitText formats how long a load waits, and why.
func waitText(w *ledger.Wait) string {
	return fmt.Sprintf("waiting until %s (%v): %s", w.Until.Local().Format(time.TimeOnly),
		round(time.Until(w.Until)), w.Why)
}

func (s *screen) progressText() string {
	p := &s.progress
	text := s.counts()
	read, total, limit := p.BytesRead.Load(), p.BytesTotal.Load(), p.Limit.Load()
	text += fmt.Sprintf(", %s read", words.Bytes(read))
	if total > 0 && limit <= 0 {
		text += fmt.Sprintf(" of %s (%d%%)", words.Bytes(total), read*100/total)
	}
	if limit > 0 {
		text += fmt.Sprintf(", %s of at most %s records", words.Grouped(p.Ended.Read.Load()), words.Grouped(limit))
	}
	return text + s.left(time.Now())
}

func (s *screen) stop() {
	if s.w.board != nil {
		s.w.board.remove(s)
	}
	close(s.stopping)
	s.stopped.Wait()
}
