package main

import (
	"strings"
	"testing"
	"time"
)

func TestProgressIsOfRowsThatAreFinalNotOfWhatIsRead(t *testing.T) {
	s := &screen{start: time.Now().Add(-time.Minute)}
	p := &s.progress
	p.BytesTotal.Store(1000)
	if got := s.bytesDone(); got != 0 {
		t.Errorf("before anything is read %d bytes are done", got)
	}
	p.BytesRead.Store(800)
	p.Read.Store(400)
	p.Written.Store(70)
	p.Rejected.Store(10)
	p.Superseded.Store(20)
	if got := s.bytesDone(); got != 200 {
		t.Errorf("%d bytes are done, want a quarter of what was read", got)
	}
	if text := s.progressText(); !strings.Contains(text, "800 bytes read of 1000 bytes (80%), about 4m") {
		t.Errorf("shown: %s", text)
	}
	s.dryRun = true
	if got := s.bytesDone(); got != 800 {
		t.Errorf("%d bytes of a dry run are done, want what was read", got)
	}
}

func TestABarWithLanesIsPainted(t *testing.T) {
	d, out := terminal(60)
	s := &screen{w: d, load: &fakeLoad{runningState()}, verbose: true, start: time.Now()}
	s.progress.BytesTotal.Store(1000)
	show := s.barShower()
	show()
	show()
	lines := screenOf(t, out.String(), 60)
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "0 rows, 0 rows/s") || !strings.HasPrefix(lines[1], "  partition 3 from 30: measure") {
		t.Errorf("shown:\n%s", strings.Join(lines, "\n"))
	}
	s.verbose = false
	d, out = terminal(60)
	s.w = d
	s.barShower()()
	if lines := screenOf(t, out.String(), 60); len(lines) != 1 {
		t.Errorf("without --verbose:\n%s", strings.Join(lines, "\n"))
	}
}
